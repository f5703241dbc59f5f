package charts

import (
	"maps"
	"slices"
	"testing"

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

// Rights on Secrets are on those that the values name, and on no others.
func TestRightsNameTheSecretsInUse(t *testing.T) {
	for set, want := range map[string][]string{
		"minimal":      {"weir-identity", "weir-webhook-tls"},
		"cert-manager": {"weir-kafka", "weir-key", "weir-webhook-tls"},
		"everything":   {"webhook-certificate", "weir-identity", "weir-kafka-client"},
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
