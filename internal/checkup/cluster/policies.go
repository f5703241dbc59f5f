package cluster

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weirproxy/weir/api/v1alpha1"
	"github.com/weirproxy/weir/api/v1alpha1/kube"
	"github.com/weirproxy/weir/internal/checkup"
)

func quotaPolicies() kind { return of(v1alpha1.Group, v1alpha1.Version, "quotapolicies") }

// policyObject is what is looked at of a QuotaPolicy: not its spec, which the controller judges.
type policyObject struct {
	metav1.ObjectMeta `json:"metadata"`

	Status kube.QuotaPolicyStatus `json:"status"`
}

// policies is the check kubernetes.policies.
func (c *Checks) policies(ctx context.Context) []checkup.Finding {
	list, err := objects[policyObject](ctx, c.kubernetes, quotaPolicies(), "", "")
	if apierrors.IsNotFound(err) {
		return []checkup.Finding{checkup.Skip("", "the resource is not defined")}
	}
	var out []checkup.Finding
	for i := range list {
		out = append(out, judgePolicy(&list[i])...)
	}
	if err != nil {
		return append(out, cannot("list", quotaPolicies(), "", err)...)
	}
	return checkup.OrOkay(out, "%s, each accepted and in force in every pod of its targets", checkup.Many(len(list), "QuotaPolicy"))
}

func judgePolicy(p *policyObject) []checkup.Finding {
	name := p.Namespace + "/" + p.Name
	if p.Status.ObservedGeneration < p.Generation {
		return []checkup.Finding{checkup.Fail("is the controller running, and does it look at this namespace (watchNamespaces)?",
			"QuotaPolicy %s: generation %d is not looked at by the controller yet (%d is)", name, p.Generation, p.Status.ObservedGeneration)}
	}
	if a := meta.FindStatusCondition(p.Status.Conditions, kube.ConditionAccepted); a == nil || a.Status != metav1.ConditionTrue {
		return []checkup.Finding{checkup.Fail("correct it and apply it again; kubectl -n "+p.Namespace+" describe quotapolicy "+p.Name, "QuotaPolicy %s is not accepted: %s", name, saying(a))}
	}
	g := meta.FindStatusCondition(p.Status.Conditions, kube.ConditionProgrammed)
	if g != nil && g.Status == metav1.ConditionTrue {
		return nil
	}
	return []checkup.Finding{checkup.Fail("kubectl -n "+p.Namespace+" describe quotapolicy "+p.Name+"; pods without a sidecar need a restart, one that lags says why in its log", "QuotaPolicy %s is not in force everywhere: %s%s", name, saying(g), podsText(p.Status.Pods))}
}

func saying(c *metav1.Condition) string {
	if c == nil {
		return "nothing is said of it"
	}
	return c.Reason + ": " + c.Message
}

// podsText is what a status says of pods.
func podsText(p *kube.PodsStatus) string {
	if p == nil {
		return ""
	}
	out := []string{fmt.Sprintf(" (%d of %d pods", p.Enforcing, p.Total)}
	if len(p.Lagging) > 0 {
		out = append(out, "lagging: "+names(p.Lagging))
	}
	if len(p.WithoutSidecarNames) > 0 {
		out = append(out, "without a sidecar: "+names(p.WithoutSidecarNames))
	}
	return strings.Join(out, "; ") + ")"
}
