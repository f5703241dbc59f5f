package policy

import (
	"fmt"
	"strings"
	"testing"

	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/internal/quota"
)

const withOverrides = `apiVersion: weirproxy.dev/v1alpha1
kind: QuotaPolicy
metadata: {name: o, namespace: shop}
spec:
  targetRefs: [{kind: Service, name: a}, {kind: Deployment, name: b}]
  client:
  - {source: Principal}
  - {source: Header, name: X-API-Key}
  - {source: Header, name: x-tenant, reveal: true}
  - {source: RemoteAddress}
  limits:
  - name: each
    counters: [Client, Method]
    rates: [{limit: 10, window: 1s}, {limit: 100, window: 1m}]
    overrides:
    - {clients: [{source: RemoteAddress, value: 10.0.0.0/8}], rates: [{limit: 11, window: 1s}]}
    - {clients: [{source: RemoteAddress, value: 10.1.0.0/16}], rates: [{limit: 12, window: 1s}]}
    - {clients: [{source: RemoteAddress, value: 10.1.0.0/16}], rates: [{limit: 13, window: 1s}]}
    - {clients: [{source: RemoteAddress, value: 10.1.2.3}], rates: [{limit: 14, window: 1s}]}
    - {clients: [{source: RemoteAddress, value: 0.0.0.0/0}], rates: [{limit: 15, window: 1s}]}
    - {clients: [{source: RemoteAddress, value: "2001:db8::/32"}], unlimited: true}
    - {clients: [{source: Header, name: x-api-key, value: acme}, {source: Principal, value: "spiffe://a"}], rates: [{limit: 200, window: 1m}]}
    - {clients: [{source: Header, name: X-Api-Key, value: acme}], rates: [{limit: 17, window: 1s}]}
    - {clients: [{source: Header, name: x-tenant, value: acme}], rates: [{limit: 18, window: 1s}, {limit: 180, window: 1m}]}
`

func key(tb testing.TB, value string) wirev1.Dimension {
	return wirev1.Dimension{Kind: wirev1.DimClientHeaderHashed, Name: "x-api-key", Value: HashValue(testKeys(tb), SourceHeader, "x-api-key", value)}
}

// The table that defines which override applies to a client.
func TestCase26WhichOverrideApplies(t *testing.T) {
	l := publish(t, OriginFile, 5, withOverrides).Limits[0]
	addr := func(v string) wirev1.Dimension {
		return wirev1.Dimension{Kind: wirev1.DimClientRemoteAddress, Value: v}
	}
	for _, c := range []struct {
		name   string
		client wirev1.Dimension
		want   string // limits of the two rates; "-": does not apply
	}{
		{"the longest prefix", addr("10.1.2.4/32"), "12 -"},
		{"of equal prefixes the first", addr("10.1.255.255/32"), "12 -"},
		{"an address", addr("10.1.2.3/32"), "14 -"},
		{"a shorter prefix", addr("10.2.0.0/32"), "11 -"},
		{"the whole of IPv4", addr("192.0.2.1/32"), "15 -"},
		{"a client wider than an override's prefix", addr("10.0.0.0/7"), "15 -"},
		{"IPv6 is not IPv4", addr("2002::/64"), "10 100"},
		{"unlimited", addr("2001:db8:1::/64"), "- -"},
		{"of equal values the first", key(t, "acme"), "- 200"},
		{"another value", key(t, "other"), "10 100"},
		{"a principal", wirev1.Dimension{Kind: wirev1.DimClientPrincipal, Value: "spiffe://a"}, "- 200"},
		{"a revealed header", wirev1.Dimension{Kind: wirev1.DimClientHeader, Name: "x-tenant", Value: "acme"}, "18 180"},
		{"a header that claims a principal", wirev1.Dimension{Kind: wirev1.DimClientHeader, Name: "x-tenant", Value: "spiffe://a"}, "10 100"},
		{"a principal that claims a header", wirev1.Dimension{Kind: wirev1.DimClientPrincipal, Value: "acme"}, "10 100"},
		{"a plain value where a hash is due", wirev1.Dimension{Kind: wirev1.DimClientHeader, Name: "x-api-key", Value: "acme"}, "10 100"},
		{"no client", wirev1.Dimension{Kind: wirev1.DimClientMissing}, "10 100"},
		{"the overflow counter", wirev1.Dimension{Kind: wirev1.DimOverflow}, "10 100"},
		{"a malformed prefix", addr("10.1.2.3"), "10 100"},
	} {
		dims := []wirev1.Dimension{c.client, {Kind: wirev1.DimMethod, Value: "GET"}}
		var got []string
		for i := range l.Rates {
			got = append(got, amountText(l.Amount(i, dims)))
		}
		if text := strings.Join(got, " "); text != c.want {
			t.Errorf("%s: %s, want %s", c.name, text, c.want)
		}
	}
}

func amountText(r *quota.Rule, unlimited bool) string {
	if unlimited {
		return "-"
	}
	return fmt.Sprint(r.Limit)
}

func TestFindingAnOverrideDoesNotAllocate(t *testing.T) {
	l := publish(t, OriginFile, 5, withOverrides).Limits[0]
	dims := []wirev1.Dimension{{Kind: wirev1.DimClientRemoteAddress, Value: "10.1.2.4/32"}}
	if n := testing.AllocsPerRun(100, func() { l.Amount(0, dims) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
