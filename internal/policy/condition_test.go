package policy

import (
	"net/netip"
	"testing"

	"github.com/weirproxy/weir/api/v1alpha1"
)

// view is a request for conditions.
type view struct {
	method, path, host string
	headers            map[string]string
	peer, hop          netip.Addr
}

func (v *view) Method() string { return v.method }
func (v *view) Path() *Path {
	p, _ := NormalizePath(v.path, nil)
	return &p
}
func (v *view) Host() string { return NormalHost(v.host) }
func (v *view) Header(name string) (string, bool) {
	s, ok := v.headers[name]
	return s, ok
}
func (v *view) Source(hops int) netip.Addr {
	if hops > 0 {
		return v.hop
	}
	return v.peer
}

func TestConditions(t *testing.T) {
	header := func(h v1alpha1.HeaderMatch) v1alpha1.When {
		return v1alpha1.When{Headers: []v1alpha1.HeaderMatch{h}}
	}
	one := view{method: "GET", host: "API.example.com.:8443", path: "/a", headers: map[string]string{"x-a": "one", "x-empty": "", "x-raw": "a\xff\nb"},
		peer: netip.MustParseAddr("10.1.2.3"), hop: netip.MustParseAddr("2001:db8::1")}
	for _, c := range []struct {
		name string
		when v1alpha1.When
		hops int
		want bool
	}{
		{"nothing asked", v1alpha1.When{}, 0, true},
		{"method", v1alpha1.When{Methods: []string{"PUT", "GET"}}, 0, true},
		{"other method", v1alpha1.When{Methods: []string{"PUT"}}, 0, false},
		{"host in any case, without port", v1alpha1.When{Hosts: []string{"Api.Example.com"}}, 0, true},
		{"host wildcard", v1alpha1.When{Hosts: []string{"*.example.com"}}, 0, true},
		{"host wildcard is not the domain", v1alpha1.When{Hosts: []string{"*.api.example.com"}}, 0, false},
		{"host is exact", v1alpha1.When{Hosts: []string{"example.com", "pi.example.com"}}, 0, false},
		{"host ends alike", v1alpha1.When{Hosts: []string{"*.ample.com"}}, 0, false},
		{"peer in prefix", v1alpha1.When{SourceCIDRs: []string{"192.0.2.0/24", "10.0.0.0/8"}}, 0, true},
		{"peer as mapped IPv6", v1alpha1.When{SourceCIDRs: []string{"::ffff:10.0.0.0/104"}}, 0, true},
		{"hop, not peer", v1alpha1.When{SourceCIDRs: []string{"10.0.0.0/8"}}, 1, false},
		{"hop in prefix", v1alpha1.When{SourceCIDRs: []string{"2001:db8::/32"}}, 1, true},
		{"header exact", header(v1alpha1.HeaderMatch{Name: "X-A", Value: "one"}), 0, true},
		{"header exact is whole", header(v1alpha1.HeaderMatch{Name: "x-a", Value: "on"}), 0, false},
		{"header exact empty", header(v1alpha1.HeaderMatch{Name: "x-empty"}), 0, true},
		{"header prefix", header(v1alpha1.HeaderMatch{Name: "x-a", Type: v1alpha1.HeaderPrefix, Value: "on"}), 0, true},
		{"header regex is whole", header(v1alpha1.HeaderMatch{Name: "x-a", Type: v1alpha1.HeaderRegularExpression, Value: "o|n"}), 0, false},
		{"header regex", header(v1alpha1.HeaderMatch{Name: "x-a", Type: v1alpha1.HeaderRegularExpression, Value: "o.e|n"}), 0, true},
		{"header of any bytes", header(v1alpha1.HeaderMatch{Name: "x-raw", Type: v1alpha1.HeaderPrefix, Value: "a"}), 0, true},
		{"header present", header(v1alpha1.HeaderMatch{Name: "x-empty", Type: v1alpha1.HeaderPresent}), 0, true},
		{"header absent", header(v1alpha1.HeaderMatch{Name: "x-b", Type: v1alpha1.HeaderPresent}), 0, false},
		{"inverted present", header(v1alpha1.HeaderMatch{Name: "x-b", Type: v1alpha1.HeaderPresent, Invert: true}), 0, true},
		{"inverted exact", header(v1alpha1.HeaderMatch{Name: "x-a", Value: "one", Invert: true}), 0, false},
		{"inverted exact of a missing header", header(v1alpha1.HeaderMatch{Name: "x-b", Value: "one", Invert: true}), 0, true},
		{"all must hold", v1alpha1.When{Methods: []string{"GET"}, Hosts: []string{"other.example.com"}}, 0, false},
		{"path", v1alpha1.When{Paths: []v1alpha1.PathMatch{{Value: "/b"}, {Value: "/a"}}}, 0, true},
		{"other path", v1alpha1.When{Paths: []v1alpha1.PathMatch{{Value: "/b"}}}, 0, false},
	} {
		cond, err := compileCondition(&c.when, c.hops)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if _, ok := cond.Matches(&one); ok != c.want {
			t.Errorf("%s: %v", c.name, ok)
		}
	}
	var none *Condition
	if text, ok := none.Matches(&one); !ok || text != NoPattern {
		t.Error("no condition does not hold", text)
	}
}

func TestNormalHost(t *testing.T) {
	for in, want := range map[string]string{
		"": "", "a.b": "a.b", "A.b:80": "a.b", "a.b.": "a.b", "a.b.:80": "a.b", "[::1]:80": "[::1]", "[::1]": "[::1]", "::1": "::1", ":": "",
	} {
		if got := NormalHost(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
