package match

import (
	"net/netip"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestTheFirstSourceThatYieldsAValue(t *testing.T) {
	m := clientsOf(t, "{source: Principal}, {source: JWTClaim, name: sub}, {source: Header, name: X-Key, reveal: true}, {source: RemoteAddress}")
	req := get("/")
	if got := clientOf(t, m, req); got != `client address "192.0.2.7/32"` {
		t.Error(got)
	}
	req.Headers.Joined = map[string]string{"x-key": "k"}
	if got := clientOf(t, m, req); got != `client header x-key "k"` {
		t.Error(got)
	}
	req.Claims = claims{"sub": "", "other": "x"}
	if got := clientOf(t, m, req); got != `client header x-key "k"` {
		t.Error(got)
	}
	req.Claims = claims{"sub": "me"}
	if got := clientOf(t, m, req); got != `client claim sub "me"` {
		t.Error(got)
	}
	req.Principal = "spiffe://a/b"
	if got := clientOf(t, m, req); got != `client principal "spiffe://a/b"` {
		t.Error(got)
	}
}

func TestSecretsLeaveAsHashesOnly(t *testing.T) {
	m := clientsOf(t, "{source: Header, name: x-key}")
	req := get("/")
	req.Headers.Joined = map[string]string{"x-key": "s3cr3t"}
	var res Result
	m.Match(req, &res)
	if id := string(res.Hits[0].Identity); strings.Contains(id, "s3cr3t") || !strings.Contains(id, "x-key") {
		t.Errorf("%q", id)
	}
}

// Values longer than an identity carries are hashed, and stay apart.
func TestLongValuesAreHashed(t *testing.T) {
	m := clientsOf(t, "{source: JWTClaim, name: sub}")
	seen := map[string]bool{}
	for _, v := range []string{strings.Repeat("a", 256), strings.Repeat("a", 257), strings.Repeat("a", 258), strings.Repeat("b", 100_000)} {
		req := get("/")
		req.Claims = claims{"sub": v}
		got := clientOf(t, m, req)
		if seen[got] || (len(v) > 256) != strings.Contains(got, "(hash ") {
			t.Errorf("%d bytes: %s", len(v), got)
		}
		seen[got] = true
	}
}

// Envoy joins repeated headers, or sends each as it came: the same counter, whichever is picked.
func TestCase10BothHeaderFormsGiveTheSameCounter(t *testing.T) {
	for pick, want := range map[string]string{
		"All": `"a,b, c"`, "First": `"a"`, "Last": `"c"`,
	} {
		m := clientsOf(t, "{source: Header, name: x-key, reveal: true, pick: "+pick+"}")
		for _, h := range []Headers{
			{Joined: map[string]string{"x-key": "a,b, c"}},
			{Raw: []Header{{"x-key", "a"}, {"x-other", "z"}, {"x-key", "b"}, {"x-key", " c"}}},
			{Raw: []Header{{"x-key", "a,b"}, {"x-key", " c"}}},
			{Raw: []Header{{"x-key", "a,b, c"}}},
		} {
			req := get("/")
			req.Headers = h
			if got := clientOf(t, m, req); got != "client header x-key "+want {
				t.Errorf("%s of %+v: %s", pick, h, got)
			}
		}
	}
}

func TestCase10HeaderFormsAgreeWhateverTheValues(t *testing.T) {
	var ms []*Matcher
	for _, pick := range []string{"All", "First", "Last"} {
		ms = append(ms, clientsOf(t, "{source: Header, name: x-key, pick: "+pick+"}, {source: RemoteAddress}"))
	}
	value := rapid.StringOf(rapid.SampledFrom([]rune("ab, \t\"")))
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(value, 0, 4).Draw(t, "values")
		list, joined := get("/"), get("/")
		for _, v := range values {
			list.Headers.Raw = append(list.Headers.Raw, Header{"x-key", v}, Header{"x-noise", "n"})
		}
		if len(values) > 0 {
			joined.Headers.Joined = map[string]string{"x-key": strings.Join(values, ",")}
		}
		for _, m := range ms {
			var a, b Result
			m.Match(list, &a)
			m.Match(joined, &b)
			if a.Hits[0].ID != b.Hits[0].ID {
				t.Fatalf("%q: %q, joined %q", values, a.Hits[0].Identity, b.Hits[0].Identity)
			}
		}
	})
}

func TestCase11AnyBytesAreAValue(t *testing.T) {
	m := clientsOf(t, "{source: Header, name: x-key, reveal: true}")
	seen := map[string]bool{}
	for _, v := range []string{"\xff", "\xfe", "\x00", "é", "e\u0301", "\xff\xff", "!"} {
		req := get("/\xff\xfe?\xff")
		req.Headers.Raw = []Header{{"x-key", v}}
		got := clientOf(t, m, req)
		if seen[got] {
			t.Errorf("%q is counted with another value", v)
		}
		seen[got] = true
	}
}

func TestCase13And14TheCallersAddress(t *testing.T) {
	for _, c := range []struct {
		hops, forwarded, peer, want string
	}{
		{"0", "", "192.0.2.7", "192.0.2.7/32"},
		{"0", "198.51.100.1", "192.0.2.7", "192.0.2.7/32"}, // forged: not looked at
		{"1", "198.51.100.1", "192.0.2.7", "198.51.100.1/32"},
		{"1", "203.0.113.9, 198.51.100.1", "192.0.2.7", "198.51.100.1/32"}, // what the client itself sent is further left
		{"1", "203.0.113.9,198.51.100.1,192.0.2.7", "192.0.2.7", "198.51.100.1/32"},
		{"1", "192.0.2.7", "192.0.2.7", "192.0.2.7/32"},
		{"2", "203.0.113.9, 198.51.100.1", "192.0.2.7", "203.0.113.9/32"},
		{"2", "203.0.113.9, 198.51.100.1, 192.0.2.7", "192.0.2.7", "203.0.113.9/32"},
		{"2", "198.51.100.1", "192.0.2.7", "192.0.2.7/32"}, // too short: a request that passed the proxies by
		{"1", "", "192.0.2.7", "192.0.2.7/32"},
		{"1", "unknown", "192.0.2.7", "192.0.2.7/32"},
		{"1", "a,,", "192.0.2.7", "192.0.2.7/32"},
		{"1", "198.51.100.1:4711", "192.0.2.7", "198.51.100.1/32"},
		{"1", "[2001:db8:1:2::9]:4711", "192.0.2.7", "2001:db8:1:2::/64"},
		{"1", "[2001:db8:1:2::9]", "192.0.2.7", "2001:db8:1:2::/64"},
		{"1", "2001:db8:1:2::9", "192.0.2.7", "2001:db8:1:2::/64"},
		{"0", "", "2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"}, // one customer has a /64
		{"0", "", "::ffff:192.0.2.7", "192.0.2.7/32"},
		{"1", "::ffff:198.51.100.1", "::ffff:192.0.2.7", "198.51.100.1/32"},
		{"0", "", "fe80::1%eth0", "fe80::/64"},
	} {
		m := clientsOf(t, "{source: RemoteAddress, trustedHops: "+c.hops+"}")
		req := get("/")
		req.Peer = netip.MustParseAddr(c.peer)
		if c.forwarded != "" {
			req.Headers.Raw = []Header{{"x-forwarded-for", c.forwarded}}
		}
		if got := clientOf(t, m, req); got != `client address "`+c.want+`"` {
			t.Errorf("%+v: %s", c, got)
		}
	}
}

func TestCase14PrefixLengths(t *testing.T) {
	m := clientsOf(t, "{source: RemoteAddress, ipv4Prefix: 24, ipv6Prefix: 48}")
	for peer, want := range map[string]string{
		"10.1.2.3": "10.1.2.0/24", "2001:db8:1:2::3": "2001:db8:1::/48", "::ffff:10.1.2.9": "10.1.2.0/24",
	} {
		req := get("/")
		req.Peer = netip.MustParseAddr(peer)
		if got := clientOf(t, m, req); got != `client address "`+want+`"` {
			t.Errorf("%s: %s", peer, got)
		}
	}
}

func TestUnknownClients(t *testing.T) {
	spec := `  client: [{source: Header, name: x-key}, {source: RemoteAddress}]
  unknownClients: %
  limits:
  - {name: each, counters: [Client], rates: [{limit: 10, window: 1s}]}
  - {name: all, rates: [{limit: 10, window: 1s}]}
`
	req := get("/")
	req.Peer = netip.Addr{} // over a unix socket
	for mode, want := range map[string]string{
		"Shared": "each: client unknown|all: ", "Exempt": "all: ", "Refuse": "all: ",
	} {
		m := matcherOf(t, strings.Replace(spec, "%", mode, 1))
		if got := strings.Join(counters(t, m, req), "|"); got != want {
			t.Errorf("%s: %q", mode, got)
		}
		var res Result
		m.Match(req, &res)
		if refused := res.Refused != nil; refused != (mode == "Refuse") || refused && res.Refused.Name != "each" {
			t.Errorf("%s: refused %v", mode, res.Refused)
		}
		m.Match(get("/"), &res)
		if res.Refused != nil || len(res.Hits) != 2 {
			t.Errorf("%s: a known client: refused %v, %d hits", mode, res.Refused, len(res.Hits))
		}
	}
	shadow := matcherOf(t, strings.NewReplacer("%", "Refuse", "name: each,", "name: each, mode: Shadow,").Replace(spec))
	var res Result
	if shadow.Match(req, &res); res.Refused != nil {
		t.Error("a shadow limit refuses")
	}
}
