package server

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weirproxy/weir/test/k8s/cluster"
	"github.com/weirproxy/weir/test/k8s/crd"
)

type server struct{ *cluster.Cluster }

// One server for all, as its start takes seconds.
func TestQuotaPolicy(t *testing.T) {
	c := server{cluster.Start(t, cluster.Options{CRDs: []string{crd.Dir}})}
	t.Run("table", c.table)
	t.Run("names", c.names)
	t.Run("explain", c.explain)
	t.Run("examples", c.examples)
	t.Run("status", c.status)
}

// The rows of the shared table, put to the server with strict field validation, as kubectl does.
func (c server) table(t *testing.T) {
	table, err := crd.LoadTable()
	if err != nil {
		t.Fatal(err)
	}
	for i := range table.Rows {
		r := &table.Rows[i]
		t.Run(r.Name, func(t *testing.T) {
			doc, err := table.Document(r, fmt.Sprintf("row-%d", i))
			if err != nil {
				t.Fatal(err)
			}
			err = c.Client.Create(t.Context(), &unstructured.Unstructured{Object: doc}, client.DryRunAll, client.FieldValidation("Strict"))
			if (err != nil) != (r.Refused != "") {
				t.Fatalf("got %v, want %q", err, r.Refused)
			}
			if err != nil && !strings.Contains(err.Error(), r.Refused) {
				t.Errorf("got %v, want %q", err, r.Refused)
			}
		})
	}
}

// Neither the short name nor any other means another resource too.
func (c server) names(t *testing.T) {
	d, err := discovery.NewDiscoveryClientForConfig(c.Config)
	if err != nil {
		t.Fatal(err)
	}
	_, lists, err := d.ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	users := make(map[string][]string)
	for _, list := range lists {
		for _, r := range list.APIResources {
			if strings.Contains(r.Name, "/") {
				continue
			}
			for _, name := range append([]string{r.Name, r.SingularName}, r.ShortNames...) {
				if id := r.Kind; name != "" && !slices.Contains(users[name], id) {
					users[name] = append(users[name], id)
				}
			}
		}
	}
	if len(users["quota"]) == 0 || len(users["qpol"]) == 0 {
		t.Fatalf("discovery found too little: %v", users)
	}
	for name, kinds := range users {
		if slices.Contains(kinds, "QuotaPolicy") && len(kinds) > 1 {
			t.Errorf("%s means %v", name, kinds)
		}
	}
}

// kubectl explain shows the fields with the documentation of their types.
func (c server) explain(t *testing.T) {
	for path, want := range map[string]string{
		"qpol":                        "QuotaPolicy holds the quotas of one or more targets",
		"qpol.spec":                   "whose requests are counted",
		"qpol.spec.limits.rates":      "TokenBucket: 1ms to 744h",
		"qpol.spec.limits.overcommit": `in quotes, such as "0.25"`,
		"qpol.spec.limits.mode":       "Shadow (counted",
		"qpol.status.pods":            "how many pods enforce observedGeneration",
	} {
		out := strings.Join(strings.Fields(c.Kubectl(t, "explain", path)), " ")
		if !strings.Contains(out, want) {
			t.Errorf("kubectl explain %s does not say %q:\n%s", path, want, out)
		}
		if strings.Contains(out, "kubebuilder") || strings.Contains(out, "<no description>") {
			t.Errorf("kubectl explain %s:\n%s", path, out)
		}
	}
}

// The example policies apply as they are.
func (c server) examples(t *testing.T) {
	files, err := filepath.Glob("../../../examples/policies/*.yaml")
	if err != nil || len(files) < 5 {
		t.Fatal(files, err)
	}
	for _, namespace := range []string{"shop", "billing"} {
		_, _ = c.TryKubectl(t, "create", "namespace", namespace)
	}
	for _, f := range files {
		if out, err := c.TryKubectl(t, "apply", "--dry-run=server", "-f", f); err != nil {
			t.Errorf("%s: %s", f, out)
		}
	}
}

// Status is a subresource: who writes the spec does not write it, and the other way round; kubectl get
// shows it.
func (c server) status(t *testing.T) {
	table, err := crd.LoadTable()
	if err != nil {
		t.Fatal(err)
	}
	doc, err := table.Document(&crd.Row{}, "orders")
	if err != nil {
		t.Fatal(err)
	}
	doc["status"] = map[string]any{"targets": "forged"}
	p := &unstructured.Unstructured{Object: doc}
	if err := c.Client.Create(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if status, _, _ := unstructured.NestedMap(p.Object, "status"); status["targets"] == "forged" {
		t.Error("a status was taken from its policy's author")
	}
	const status = `{"spec":{"unknownClients":"Refuse"},"status":{"observedGeneration":1,"targets":"Service/orders","limits":"all","pods":{"enforcing":2,"total":3,"ratio":"2/3","withoutSidecar":1,"withoutSidecarNames":["orders-x"]},"conditions":[
		{"type":"Accepted","status":"True","reason":"Accepted","message":"","lastTransitionTime":"2026-11-30T00:00:00Z","observedGeneration":1},
		{"type":"Programmed","status":"False","reason":"PartiallyProgrammed","message":"2 of 3 pods","lastTransitionTime":"2026-11-30T00:00:00Z","observedGeneration":1}]}}`
	c.Kubectl(t, "patch", "qpol", "orders", "--subresource=status", "--type=merge", "-p", status)
	lines := strings.Split(strings.TrimSpace(c.Kubectl(t, "get", "weir")), "\n") // by the category
	if len(lines) != 2 {
		t.Fatal(lines)
	}
	if got := strings.Fields(lines[0]); !slices.Equal(got, []string{"NAME", "TARGETS", "LIMITS", "ACCEPTED", "PROGRAMMED", "PODS", "AGE"}) {
		t.Error(got)
	}
	if got := strings.Fields(lines[1]); !slices.Equal(got[:6], []string{"orders", "Service/orders", "all", "Accepted", "PartiallyProgrammed", "2/3"}) {
		t.Error(got)
	}
	if got := c.Kubectl(t, "get", "qpol", "orders", "-o", "jsonpath={.spec.unknownClients} {.metadata.generation}"); got != "Shared 1" {
		t.Errorf("a status patch changed the spec: %q", got)
	}
}
