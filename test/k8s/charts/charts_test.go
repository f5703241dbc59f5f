package charts

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/weirproxy/weir/test/k8s/cluster"
)

const (
	namespace = "weir-system"
	chart     = "../../../charts/weir"
	crds      = "../../../charts/weir-crds"
)

// values is the file of one of the sets that test/charts renders too.
func values(set string) string {
	return filepath.Join("../../charts/testdata", set, "values.yaml")
}

// One server for all, as its start takes seconds.
func TestCharts(t *testing.T) {
	c := cluster.Start(t, cluster.Options{})
	c.Apply(t, foreign())
	// Every pod of weir is held to the strictest standard here.
	c.Namespace(t, namespace, map[string]string{"pod-security.kubernetes.io/enforce": "restricted"})
	for _, ns := range []string{"shop", "billing"} {
		c.Namespace(t, ns, nil)
	}
	c.Apply(t, "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: platform-critical}\nvalue: 1000000\n")
	c.Helm(t, "install", "weir-crds", crds, "--namespace", namespace)
	for _, set := range []string{"minimal", "production", "cert-manager", "everything", "watched", "tiny"} {
		t.Run(set, func(t *testing.T) { valid(t, c, set) })
	}
	t.Run("life", func(t *testing.T) { life(t, c) })
}

// foreign are the definitions of others' kinds that the chart can make objects of; what is in them is theirs to judge.
func foreign() string {
	var b strings.Builder
	for group, kinds := range map[string][]string{
		"cert-manager.io/v1":       {"Issuer", "Certificate"},
		"keda.sh/v1alpha1":         {"ScaledObject"},
		"monitoring.coreos.com/v1": {"PodMonitor", "ServiceMonitor", "PrometheusRule"},
	} {
		group, version, _ := strings.Cut(group, "/")
		for _, kind := range kinds {
			plural := strings.ToLower(kind) + "s"
			fmt.Fprintf(&b, `---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[1]s.%[2]s}
spec:
  group: %[2]s
  scope: Namespaced
  names: {kind: %[3]s, plural: %[1]s}
  versions:
  - name: %[4]s
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`, plural, group, kind, version)
		}
	}
	return b.String()
}

// valid is that kube-apiserver takes every object of a set, each field known, and that its pods may run.
func valid(t *testing.T, c *cluster.Cluster, set string) {
	c.Helm(t, "lint", chart, "--strict", "--values", values(set))
	objects := rendered(t, c, set)
	c.Apply(t, joined(t, objects), "--dry-run=server", "--server-side")
	var pods []map[string]any
	for _, o := range objects {
		if pod := podOf(o); pod != nil {
			pods = append(pods, pod)
		}
	}
	if len(pods) < 3 {
		t.Fatalf("%d pods", len(pods))
	}
	c.Apply(t, joined(t, pods), "--dry-run=server")
}

// rendered are the objects of a release as Helm would make it here, tests included.
func rendered(t *testing.T, c *cluster.Cluster, set string) []map[string]any {
	t.Helper()
	out := c.Helm(t, "install", "weir", chart, "--namespace", namespace, "--dry-run=server", "--output", "json", "--values", values(set))
	var release struct {
		Manifest string
		Hooks    []struct{ Manifest string }
	}
	_, text, _ := strings.Cut(out, "{") // what Helm says before is for people
	if err := yaml.Unmarshal([]byte("{"+text), &release); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	documents := strings.Split(release.Manifest, "\n---\n")
	for _, h := range release.Hooks {
		documents = append(documents, h.Manifest)
	}
	var objects []map[string]any
	for _, d := range documents {
		o := map[string]any{}
		if err := yaml.Unmarshal([]byte(d), &o); err != nil {
			t.Fatalf("%v in %s", err, d)
		}
		if len(o) > 0 {
			objects = append(objects, o)
		}
	}
	return objects
}

// podOf is the pod that an object makes or is, nil where there is none.
func podOf(o map[string]any) map[string]any {
	meta := o["metadata"].(map[string]any)
	spec, _ := o["spec"].(map[string]any)
	pod := map[string]any{"apiVersion": "v1", "kind": "Pod"}
	switch o["kind"] {
	case "Pod":
		pod["metadata"], pod["spec"] = meta, spec
	case "StatefulSet", "Deployment", "Job":
		template := spec["template"].(map[string]any)
		pod["metadata"], pod["spec"] = template["metadata"], template["spec"]
		template["metadata"].(map[string]any)["name"] = meta["name"]
		template["metadata"].(map[string]any)["namespace"] = namespace
	default:
		return nil
	}
	return pod
}

func joined(t *testing.T, objects []map[string]any) string {
	t.Helper()
	var b strings.Builder
	for _, o := range objects {
		text, err := yaml.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "---\n%s", text)
	}
	return b.String()
}
