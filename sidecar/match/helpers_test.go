package match

import (
	"bytes"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/internal/policy"
)

func testKeys(tb testing.TB) wirev1.Keys {
	tb.Helper()
	keys, err := wirev1.NewKeys(bytes.Repeat([]byte{7}, wirev1.KeySize))
	if err != nil {
		tb.Fatal(err)
	}
	return keys
}

// setOf makes a set of documents as a sidecar gets them. spec is what follows `spec:`, indented by two.
func setOf(tb testing.TB, specs ...string) *policy.Set {
	tb.Helper()
	var all []*policy.Policy
	for i, spec := range specs {
		text := fmt.Sprintf("apiVersion: weirproxy.dev/v1alpha1\nkind: QuotaPolicy\nmetadata: {name: p%d, namespace: shop}\nspec:\n%s", i, spec)
		docs, err := policy.Parse("test", []byte(text))
		if err != nil {
			tb.Fatal(err)
		}
		key, msg, err := policy.Encode(policy.OriginFile, docs[0], testKeys(tb), nil)
		if err != nil {
			tb.Fatal(err)
		}
		p, err := policy.Decode(key, int64(i), msg)
		if err != nil {
			tb.Fatal(err)
		}
		all = append(all, p)
	}
	return policy.NewSet(all)
}

var testPod = Pod{Namespace: "shop", OwnerKind: "Deployment", OwnerName: "orders"}

// matcherOf makes a matcher of the pod shop/Deployment/orders.
func matcherOf(tb testing.TB, specs ...string) *Matcher {
	tb.Helper()
	for i := range specs {
		specs[i] = "  targetRefs: [{kind: Deployment, name: orders}]\n" + specs[i]
	}
	m, err := New(setOf(tb, specs...), testKeys(tb), testPod)
	if err != nil {
		tb.Fatal(err)
	}
	return m
}

// clientsOf makes a matcher that counts each client, found by the sources.
func clientsOf(tb testing.TB, sources string) *Matcher {
	tb.Helper()
	return matcherOf(tb, "  client: ["+sources+"]\n  limits: [{name: each, counters: [Client], rates: [{limit: 10, window: 1s}]}]\n")
}

func get(path string) *Request {
	return &Request{Method: "GET", Path: path, Host: "shop.example.com", Peer: netip.MustParseAddr("192.0.2.7")}
}

// counters returns the dimensions of each hit in words.
func counters(tb testing.TB, m *Matcher, req *Request) []string {
	tb.Helper()
	var res Result
	m.Match(req, &res)
	var out []string
	for i := range res.Hits {
		out = append(out, res.Hits[i].Limit.Name+": "+words(tb, res.Hits[i].Identity))
	}
	return out
}

func words(tb testing.TB, identity []byte) string {
	tb.Helper()
	id, err := wirev1.DecodeIdentity(identity)
	if err != nil {
		tb.Fatal(err)
	}
	var parts []string
	for i := range id.Dimensions {
		parts = append(parts, policy.DescribeDimension(&id.Dimensions[i]))
	}
	return strings.Join(parts, ", ")
}

// client returns the client of the only hit in words.
func clientOf(tb testing.TB, m *Matcher, req *Request) string {
	tb.Helper()
	got := counters(tb, m, req)
	if len(got) != 1 {
		tb.Fatalf("%d hits: %q", len(got), got)
	}
	return strings.TrimPrefix(got[0], "each: ")
}

type claims map[string]string

func (c claims) Claim(name string) (string, bool) {
	v, ok := c[name]
	return v, ok
}
