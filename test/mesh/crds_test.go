package mesh

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gateway "github.com/envoyproxy/gateway"
	"istio.io/istio/manifests"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/yaml"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	sigsyaml "sigs.k8s.io/yaml"
)

// kinds are the published schemas, by apiVersion and kind.
type kinds map[string]*apiextensions.JSONSchemaProps

// published reads the CRDs that Istio and Envoy Gateway publish, out of their modules.
func published(t *testing.T) kinds {
	t.Helper()
	known := kinds{}
	istio, err := manifests.FS.ReadFile("charts/base/files/crd-all.gen.yaml")
	if err != nil {
		t.Fatal(err)
	}
	known.add(t, istio)
	known.add(t, gateway.GatewayCRDs)
	return known
}

func (k kinds) add(t *testing.T, text []byte) {
	t.Helper()
	for _, doc := range split(t, text) {
		var crd apiextensionsv1.CustomResourceDefinition
		if err := sigsyaml.Unmarshal(doc, &crd); err != nil {
			t.Fatal(err)
		}
		for _, v := range crd.Spec.Versions {
			var internal apiextensions.JSONSchemaProps
			if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(v.Schema.OpenAPIV3Schema, &internal, nil); err != nil {
				t.Fatal(err)
			}
			k[crd.Spec.Group+"/"+v.Name+" "+crd.Spec.Names.Kind] = &internal
		}
	}
}

// split takes a stream of YAML documents apart; those that say nothing are left out.
func split(t *testing.T, text []byte) (docs [][]byte) {
	t.Helper()
	for r := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text))); ; {
		doc, err := r.Read()
		if errors.Is(err, io.EOF) {
			return docs
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(bytes.TrimSpace(doc)) > 0 {
			docs = append(docs, doc)
		}
	}
}

// faults are what a server with the published CRDs would object to in an object: fields that it does not know, the
// schema's types and formats, and the rules in CEL.
func (k kinds) faults(t *testing.T, object map[string]any) (faults []string) {
	t.Helper()
	apiVersion, _ := object["apiVersion"].(string)
	kind, _ := object["kind"].(string)
	props := k[apiVersion+" "+kind]
	if props == nil {
		return []string{"nobody publishes " + apiVersion + " " + kind}
	}
	structural, err := schema.NewStructural(props)
	if err != nil {
		t.Fatalf("%s: %v", kind, err)
	}
	for _, unknown := range pruning.PruneWithOptions(object, structural, true, schema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}) {
		faults = append(faults, "unknown field "+unknown)
	}
	defaulting.Default(object, structural)
	validator, _, err := validation.NewSchemaValidator(props)
	if err != nil {
		t.Fatalf("%s: %v", kind, err)
	}
	for _, err := range validation.ValidateCustomResource(nil, object, validator) {
		faults = append(faults, err.Error())
	}
	if rules := cel.NewValidator(structural, true, celconfig.PerCallLimit); rules != nil {
		errs, _ := rules.Validate(t.Context(), nil, structural, object, nil, celconfig.RuntimeCELCostBudget)
		for _, err := range errs {
			faults = append(faults, err.Error())
		}
	}
	return faults
}

// objects are the Kubernetes objects of a file.
func objects(t *testing.T, file string) (found []map[string]any) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, doc := range split(t, text) {
		asJSON, err := sigsyaml.YAMLToJSON(doc)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		var object map[string]any
		if err := json.Unmarshal(asJSON, &object); err != nil { // whole numbers stay whole, as a server reads them
			t.Fatalf("%s: %v", file, err)
		}
		if object["kind"] != nil {
			found = append(found, object)
		}
	}
	return found
}

// All that weir render prints for Istio and Envoy Gateway is valid by what these publish.
func TestRenderedObjectsAreValid(t *testing.T) {
	known := published(t)
	var files []string
	for _, pattern := range []string{"istio*.yaml", "envoy-gateway*.yaml"} {
		found, err := filepath.Glob(filepath.Join("..", "..", "internal", "render", "testdata", pattern))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	seen := map[string]bool{}
	for _, file := range files {
		for _, object := range objects(t, file) {
			kind, _ := object["kind"].(string)
			seen[kind] = true
			for _, fault := range known.faults(t, object) {
				t.Errorf("%s: %s: %s", filepath.Base(file), kind, fault)
			}
		}
	}
	for _, kind := range []string{"ServiceEntry", "DestinationRule", "AuthorizationPolicy", "EnvoyFilter", "Backend", "SecurityPolicy", "EnvoyProxy"} {
		if !seen[kind] {
			t.Errorf("no %s was looked at", kind)
		}
	}
}

// The schemas find what is wrong: a field's name, a value's form, and what only a rule says.
func TestFaultsAreFound(t *testing.T) {
	known := published(t)
	file := filepath.Join("..", "..", "internal", "render", "testdata", "envoy-gateway.yaml")
	for want, spoil := range map[string]func(extAuth map[string]any){
		"unknown field":                         func(a map[string]any) { a["timeOut"] = "1s" },
		"timeout":                               func(a map[string]any) { a["timeout"] = "0.150s" },
		"one of grpc or http must be specified": func(a map[string]any) { delete(a, "grpc") },
	} {
		found := objects(t, file)
		i := slices.IndexFunc(found, func(o map[string]any) bool { return o["kind"] == "SecurityPolicy" })
		spec, _ := found[i]["spec"].(map[string]any)
		extAuth, _ := spec["extAuth"].(map[string]any)
		spoil(extAuth)
		if faults := strings.Join(known.faults(t, found[i]), "\n"); !strings.Contains(faults, want) {
			t.Errorf("want %q, found %q", want, faults)
		}
	}
}
