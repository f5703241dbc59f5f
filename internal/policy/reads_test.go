package policy

import (
	"slices"
	"testing"
)

// A header that some part of a policy looks at and that is not read would be a header that no client sends.
func TestEveryPartThatLooksAtAHeaderIsRead(t *testing.T) {
	p := publish(t, OriginFile, 1, `apiVersion: weirproxy.dev/v1alpha1
kind: QuotaPolicy
metadata: {name: p, namespace: shop}
spec:
  targetRefs: [{kind: Service, name: orders}]
  exclude: [CORSPreflight, HealthCheck]
  client:
  - {source: JWTClaim, name: sub}
  - {source: Header, name: X-Api-Key}
  - {source: RemoteAddress, trustedHops: 1}
  limits:
  - name: a
    when: {headers: [{name: X-Plan, value: free}]}
    counters: [Client, "Header:X-Tenant"]
    cost: {header: X-Cost, max: 5}
    rates: [{limit: 10, window: 1s}]
`)
	want := []string{"access-control-request-method", "origin", "user-agent", "x-api-key", "x-cost", "x-forwarded-for", "x-plan", "x-tenant"}
	if r := ReadsOf([]*Policy{p, p}); !slices.Equal(r.Headers, want) || !r.Claims {
		t.Errorf("%q, claims %v; want %q and claims", r.Headers, r.Claims, want)
	}
	if r := ReadsOf(nil); r.Headers != nil || r.Claims {
		t.Errorf("no policies read %+v", r)
	}
}
