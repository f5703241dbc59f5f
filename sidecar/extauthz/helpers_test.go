package extauthz

import (
	"bytes"
	"testing"

	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"

	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/internal/policy"
	"github.com/weirproxy/weir/sidecar/match"
)

const named = "shop/Service/orders"

// policyOf a spec, on shop/Service/orders.
func policyOf(t *testing.T, spec string) *policy.Policy {
	t.Helper()
	docs, err := policy.Parse("test", []byte("apiVersion: weirproxy.dev/v1alpha1\nkind: QuotaPolicy\n"+
		"metadata: {name: p, namespace: shop}\nspec:\n  targetRefs: [{kind: Service, name: orders}]\n"+spec))
	if err != nil {
		t.Fatal(err)
	}
	p, err := policy.Compile(policy.Key{Origin: policy.OriginFile, Namespace: "shop", Name: "p"}, 1, docs[0], nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// matcher of one policy.
func matcher(t *testing.T, p *policy.Policy) *match.Matcher {
	t.Helper()
	keys, err := wirev1.NewKeys(bytes.Repeat([]byte{7}, wirev1.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	m, err := match.New(policy.NewSet([]*policy.Policy{p}), keys, match.Pod{Namespace: "shop", Named: []string{named}})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// hits returns the id of a check's one counter.
func hits(t interface{ Fatalf(string, ...any) }, m *match.Matcher, in *authv3.CheckRequest) wirev1.ID {
	var req match.Request
	var res match.Result
	if _, ok := convert(in, &req, nil); !ok {
		t.Fatalf("refused")
	}
	m.Match(&req, &res)
	if len(res.Hits) != 1 {
		t.Fatalf("%d hits", len(res.Hits))
	}
	return res.Hits[0].ID
}
