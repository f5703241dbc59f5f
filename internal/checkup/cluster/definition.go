package cluster

import (
	"context"
	"crypto/sha256"
	_ "embed" // the schema's hash
	"encoding/hex"
	"encoding/json"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/weirproxy/weir/api/v1alpha1"
	"github.com/weirproxy/weir/internal/checkup"
)

func definitions() kind { return of("apiextensions.k8s.io", "v1", "customresourcedefinitions") }

// schemaHash is that of charts/weir-crds, which a test holds it to.
//
//go:embed schema.sha256
var schemaHash string

// definition is what is looked at of a CustomResourceDefinition.
type definition struct {
	Spec struct {
		Versions []struct {
			Name    string `json:"name"`
			Served  bool   `json:"served"`
			Storage bool   `json:"storage"`
			Schema  struct {
				OpenAPIV3Schema map[string]any `json:"openAPIV3Schema"`
			} `json:"schema"`
		} `json:"versions"`
	} `json:"spec"`
	Status struct {
		Conditions []condition `json:"conditions"`
	} `json:"status"`
}

// condition is what is looked at of one.
type condition struct {
	Type    string `json:"type"`
	Status  string `json:"status"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// lacking is the first condition of a type that is there and not True; nil: none.
func lacking(conditions []condition, types ...string) *condition {
	for _, t := range types {
		for i := range conditions {
			if conditions[i].Type == t && conditions[i].Status != "True" {
				return &conditions[i]
			}
		}
	}
	return nil
}

const upgradeDefinition = "helm upgrade --install weir-crds charts/weir-crds --namespace weir-system, of this program's version"

// definition is the check kubernetes.definition.
func (c *Checks) definition(ctx context.Context) []checkup.Finding {
	d, err := object[definition](ctx, c.kubernetes, definitions(), "", definitionName)
	if err != nil && !apierrors.IsNotFound(err) {
		return cannot("get", definitions(), "", err)
	}
	return judgeDefinition(d, strings.TrimSpace(schemaHash))
}

// judgeDefinition: d nil: there is none. hash is that of this program's schema.
func judgeDefinition(d *definition, hash string) []checkup.Finding {
	if d == nil {
		return []checkup.Finding{checkup.Fail(upgradeDefinition, "the resource %s is not defined", definitionName)}
	}
	if bad := lacking(d.Status.Conditions, "Established", "NamesAccepted"); bad != nil {
		return []checkup.Finding{checkup.Fail("kubectl describe crd "+definitionName, "the definition of %s is not %s: %s %s", definitionName, bad.Type, bad.Reason, bad.Message)}
	}
	for _, v := range d.Spec.Versions {
		if v.Name != v1alpha1.Version || !v.Served {
			continue
		}
		if sum(v.Schema.OpenAPIV3Schema) != hash {
			return []checkup.Finding{checkup.Warn(upgradeDefinition, "the definition of %s is of another version of weir than this program: it may refuse or drop what this one knows", definitionName)}
		}
		return []checkup.Finding{checkup.Okay("%s is defined as this program has it, version %s", definitionName, v.Name)}
	}
	return []checkup.Finding{checkup.Fail(upgradeDefinition, "%s does not serve version %s", definitionName, v1alpha1.Version)}
}

// sum is a schema's hash. Descriptions do not count.
func sum(schema map[string]any) string {
	data, err := json.Marshal(undescribed(schema)) // keys are sorted
	if err != nil {
		return ""
	}
	h := sha256.Sum256(data)
	return hex.EncodeToString(h[:])
}

func undescribed(v any) any {
	switch x := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(x))
		for k, e := range x {
			if _, text := e.(string); k == "description" && text {
				continue // a property of that name is a map
			}
			out[k] = undescribed(e)
		}
		return out
	case []any:
		out := make([]any, len(x))
		for i, e := range x {
			out[i] = undescribed(e)
		}
		return out
	}
	return v
}
