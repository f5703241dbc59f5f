package policy_test

import (
	"fmt"
	"testing"

	"github.com/weirproxy/weir/internal/policy"
)

func TestOnlyAnEnforcedLimitThatDeniesFailsClosed(t *testing.T) {
	for _, c := range []struct {
		failure, mode string
		want          bool
	}{
		{"LocalShare", "Enforce", false},
		{"Allow", "Enforce", false},
		{"Deny", "Enforce", true},
		{"Deny", "Shadow", false},
		{"Deny", "Off", false},
	} {
		docs, err := policy.Parse("p.yaml", fmt.Appendf(nil, `apiVersion: weirproxy.dev/v1alpha1
kind: QuotaPolicy
metadata: {name: p, namespace: shop}
spec:
  targetRefs: [{kind: Service, name: orders}]
  failure: {mode: %s}
  limits: [{name: all, mode: %s, rates: [{limit: 5, window: 1s}]}]
`, c.failure, c.mode))
		if err != nil {
			t.Fatal(err)
		}
		p, err := policy.Compile(policy.Key{Origin: policy.OriginFile, Namespace: "shop", Name: "p"}, 1, docs[0], nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := policy.FailsClosed([]*policy.Policy{p}); got != c.want {
			t.Errorf("failure %s, mode %s: fails closed is %t", c.failure, c.mode, got)
		}
	}
	if policy.FailsClosed(nil) {
		t.Error("no policy fails closed")
	}
}
