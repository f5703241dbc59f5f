package charts

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
)

// In watched namespaces the controller has Roles; cluster-wide it has only what belongs to no namespace.
func TestRightsEndWithTheWatchedNamespaces(t *testing.T) {
	whole, watched := objects(t, "minimal"), objects(t, "watched")
	if watched["ClusterRole/weir-controller"] == nil {
		t.Fatalf("no rules: %v", slices.Sorted(maps.Keys(watched)))
	}
	outside := []string{"namespaces", "mutatingwebhookconfigurations", "tokenreviews", "subjectaccessreviews", "customresourcedefinitions"}
	cluster := into[rbacv1.ClusterRole](t, watched["ClusterRole/weir-controller"])
	for _, rule := range cluster.Rules {
		for _, r := range rule.Resources {
			if !slices.Contains(outside, r) {
				t.Errorf("%s in the whole cluster", r)
			}
		}
	}
	var want []string
	for _, rule := range into[rbacv1.ClusterRole](t, whole["ClusterRole/weir-controller"]).Rules {
		for _, r := range rule.Resources {
			if !slices.Contains(outside, r) {
				want = append(want, r)
			}
		}
	}
	slices.Sort(want)
	for _, ns := range []string{"shop", "billing"} {
		role := into[rbacv1.Role](t, watched[ns+"/Role/weir-controller-watch"])
		var got []string
		for _, rule := range role.Rules {
			got = append(got, rule.Resources...)
		}
		if slices.Sort(got); !slices.Equal(got, want) || len(got) == 0 {
			t.Errorf("%s: rights on %v, want %v", ns, got, want)
		}
		binding := into[rbacv1.RoleBinding](t, watched[ns+"/RoleBinding/weir-controller-watch"])
		if binding.RoleRef.Name != role.Name || binding.Subjects[0].Namespace != "weir-system" {
			t.Errorf("%s: %+v", ns, binding)
		}
	}
}

// A namespace may be called by a number, which YAML would take for one.
func TestANumberIsANamespace(t *testing.T) {
	values, err := Values("watched")
	if err != nil {
		t.Fatal(err)
	}
	values["controller"] = map[string]any{"watchNamespaces": []any{"123"}}
	files, err := Render(values, sets["watched"])
	if err != nil {
		t.Fatal(err)
	}
	list, err := files.Objects()
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, o := range list {
		switch o.GetKind() {
		case "Role", "RoleBinding":
			if o.GetNamespace() == "123" {
				found++
			}
		case "MutatingWebhookConfiguration":
			into[admissionregistrationv1.MutatingWebhookConfiguration](t, o)
		}
	}
	if found != 2 {
		t.Errorf("%d objects in the namespace, want 2", found)
	}
}

// Rights on Secrets are on those that the values name, and on no others.
func TestRightsNameTheSecretsInUse(t *testing.T) {
	for set, want := range map[string][]string{
		"minimal":      {"weir-identity", "weir-webhook-tls"},
		"cert-manager": {"weir-kafka", "weir-key"},
		"everything":   {"weir-identity", "weir-kafka-client"},
	} {
		var got []string
		for id, o := range objects(t, set) {
			if id != "ClusterRole/weir-controller" && id != "Role/weir-controller" {
				continue
			}
			for _, rule := range into[rbacv1.Role](t, o).Rules {
				if slices.Contains(rule.Resources, "secrets") {
					got = append(got, rule.ResourceNames...)
				}
			}
		}
		slices.Sort(got)
		if got = slices.Compact(got); !slices.Equal(got, want) {
			t.Errorf("%s: rights on Secrets %v, want %v", set, got, want)
		}
	}
}

// Where the certificate is somebody else's, the controller neither makes one nor announces it.
func TestRightsOfACertificateAreThereWhereItIsMade(t *testing.T) {
	for set, want := range map[string]bool{"minimal": true, "watched": true, "cert-manager": false, "everything": false} {
		all := objects(t, set)
		got := map[string]bool{}
		for _, rule := range into[rbacv1.ClusterRole](t, all["ClusterRole/weir-controller"]).Rules {
			got["announce"] = got["announce"] || slices.Contains(rule.Resources, "mutatingwebhookconfigurations")
		}
		for _, rule := range into[rbacv1.Role](t, all["Role/weir-controller"]).Rules {
			got["make"] = got["make"] || slices.Contains(rule.Resources, "secrets") && slices.Contains(rule.Verbs, "create")
		}
		if got["announce"] != want || got["make"] != want {
			t.Errorf("%s: rights %v, want %v", set, got, want)
		}
	}
}

// helm test has the rights that docs/check.md lists, each and no other.
func TestHelmTestHasTheDocumentedRights(t *testing.T) {
	page, err := os.ReadFile("../../docs/check.md")
	if err != nil {
		t.Fatal(err)
	}
	tables := strings.Split(string(page), "| group | resource | verbs | names |\n|---|---|---|---|\n")
	if len(tables) != 3 {
		t.Fatalf("docs/check.md has %d tables of rights, want 2", len(tables)-1)
	}
	all := objects(t, "minimal")
	for i, id := range []string{"Role/weir-check", "ClusterRole/weir-check"} {
		var want, got []string
		for line := range strings.Lines(tables[i+1]) {
			cells := strings.Split(strings.TrimSpace(line), "|")
			if len(cells) != 6 {
				break
			}
			group := strings.Replace(strings.TrimSpace(cells[1]), "core", "", 1)
			want = append(want, spelled(group, words(cells[2]), words(cells[3]), words(cells[4]))...)
		}
		for _, r := range into[rbacv1.Role](t, all[id]).Rules {
			got = append(got, spelled(r.APIGroups[0], r.Resources, r.Verbs, r.ResourceNames)...)
		}
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(got, want) || len(got) == 0 {
			t.Errorf("%s: rights\n%s\nwant\n%s", id, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

// words of a table's cell.
func words(cell string) []string {
	return strings.Fields(strings.ReplaceAll(cell, ",", " "))
}

// spelled are rights one by one.
func spelled(group string, resources, verbs, names []string) []string {
	if len(names) == 0 {
		names = []string{"all"}
	}
	var out []string
	for _, r := range resources {
		for _, v := range verbs {
			for _, n := range names {
				out = append(out, strings.Join([]string{v, group, r, n}, " "))
			}
		}
	}
	return out
}
