package match

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/internal/policy"
)

func TestEveryLimitThatAppliesIsHit(t *testing.T) {
	m := matcherOf(t, `  client: [{source: RemoteAddress}]
  limits:
  - name: writes
    when: {methods: [POST, BREW], paths: [{type: Template, value: "/orders/{id}"}, {type: Prefix, value: /orders}]}
    counters: [Client, Endpoint]
    rates: [{limit: 1, window: 1s}, {limit: 2, window: 1m}]
  - {name: off, mode: Off, rates: [{limit: 1, window: 1s}]}
  - {name: methods, counters: [Method, Host], rates: [{limit: 3, window: 1s}]}
  - {name: region, counters: ["Header:X-Region:Reveal", "Header:x-key"], rates: [{limit: 3, window: 1s}]}
  - {name: all, rates: [{limit: 4, window: 1s}]}
`)
	req := get("/orders/../orders//7;a?b")
	req.Method, req.Host = "POST", "Shop.Example.com:443"
	req.Headers.Raw = []Header{{"x-region", "eu"}}
	writes := `writes: client address "192.0.2.7/32", endpoint "POST /orders/{id}"`
	want := []string{writes, writes, `methods: method "POST", host "shop.example.com"`, `region: header x-region "eu", header x-key missing`, "all: "}
	if got := counters(t, m, req); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if got := counters(t, m, get("/orders/7")); len(got) != 3 {
		t.Errorf("GET: %q", got)
	}
	req.Method, req.Path = "BREW", "/orders/7/x"
	if got := counters(t, m, req); got[0] != `writes: client address "192.0.2.7/32", endpoint "BREW /orders"` || got[2] != `methods: method "*", host "shop.example.com"` {
		t.Errorf("%q", got)
	}
}

// Neither paths nor made-up methods make counters: only what the policy names does.
func TestCase18And12EndpointIsNeverTheRawPath(t *testing.T) {
	m := matcherOf(t, `  limits:
  - name: each
    when: {paths: [{type: Template, value: "/{a}"}, {type: RegularExpression, value: "/x/.*"}]}
    counters: [Endpoint, Method]
    rates: [{limit: 1, window: 1s}]
`)
	ids := map[wirev1.ID]bool{}
	var res Result
	for i := range 1000 {
		req := get(fmt.Sprintf("/%d?q=%d", i, i))
		if i%2 == 0 {
			req = get(fmt.Sprintf("/x/%d/%d", i, i))
		}
		if i%3 == 0 {
			req.Method = fmt.Sprintf("M%d", i)
		}
		m.Match(req, &res)
		for j := range res.Hits {
			ids[res.Hits[j].ID] = true
		}
	}
	if len(ids) != 4 { // two patterns, GET and other
		t.Errorf("%d counters", len(ids))
	}
}

func TestCase08ExcludedRequestsAreNotCounted(t *testing.T) {
	limits := "  limits: [{name: all, rates: [{limit: 1, window: 1s}]}]\n"
	preflight := get("/")
	preflight.Method = "OPTIONS"
	preflight.Headers.Joined = map[string]string{"origin": "https://a", "access-control-request-method": "PUT"}
	options := get("/")
	options.Method = "OPTIONS"
	options.Headers.Joined = map[string]string{"origin": "https://a"}
	probe := get("/healthz")
	probe.Headers.Raw = []Header{{"user-agent", "kube-probe/1.37"}}
	forged := get("/orders")
	forged.Method = "DELETE"
	forged.Headers.Raw = probe.Headers.Raw
	grpc := get("/grpc.health.v1.Health/Check")
	grpc.Method = "POST"
	all := map[string]*Request{"preflight": preflight, "options": options, "probe": probe, "forged": forged, "grpc": grpc, "get": get("/")}
	for exclude, excluded := range map[string][]string{
		"": {"preflight"},
		"  exclude: [CORSPreflight, HealthCheck]\n": {"preflight", "probe", "grpc"},
		"  exclude: [HealthCheck]\n":                {"probe", "grpc"},
		"  exclude: []\n":                           nil,
	} {
		m := matcherOf(t, exclude+limits)
		for name, req := range all {
			var res Result
			m.Match(req, &res)
			if got := len(res.Hits) == 0; got != slices.Contains(excluded, name) || res.NoPolicy {
				t.Errorf("%q: %s: %d hits, no policy %v", exclude, name, len(res.Hits), res.NoPolicy)
			}
		}
	}
}

func TestCase15NoPolicyIsSaid(t *testing.T) {
	set := setOf(t, "  targetRefs: [{kind: Service, name: a}]\n  limits: [{name: all, rates: [{limit: 1, window: 1s}]}]\n")
	m, err := New(set, testKeys(t), Pod{Namespace: "shop", OwnerKind: "Deployment", OwnerName: "a", Named: []string{"shop/Service/a", "shop/Service/b"}})
	if err != nil {
		t.Fatal(err)
	}
	for target, want := range map[string]bool{"": true, "shop/Service/a": false, "shop/Service/b": true, "shop/Service/c": true} {
		req := get("/")
		req.Target = target
		var res Result
		if m.Match(req, &res); res.NoPolicy != want || (len(res.Hits) == 0) != want {
			t.Errorf("%q: no policy %v, %d hits", target, res.NoPolicy, len(res.Hits))
		}
	}
	if got := m.Uncovered(); !slices.Equal(got, []string{"shop/Service/b"}) {
		t.Error(got)
	}
}

func TestTargetsOfAPod(t *testing.T) {
	limits := "  limits: [{name: all, rates: [{limit: 1, window: 1s}]}]\n"
	set := setOf(t, "  targetRefs: [{kind: Deployment, name: orders}, {kind: Service, name: a}]\n"+limits, "  targetRefs: [{kind: Service, name: a}]\n"+limits)
	pod := testPod
	pod.Targets = []string{"shop/Service/a"}
	m, err := New(set, testKeys(t), pod)
	if err != nil {
		t.Fatal(err)
	}
	var res Result
	m.Match(get("/"), &res)
	var got []string
	for i := range res.Hits {
		got = append(got, res.Hits[i].Target+" "+res.Hits[i].Limit.Policy.Name)
	}
	if want := []string{"shop/Service/a shop/p0", "shop/Service/a shop/p1", "shop/Deployment/orders shop/p0"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if want := []string{"shop/Service/a", "shop/Deployment/orders"}; !slices.Equal(m.Targets(), want) {
		t.Error(m.Targets())
	}
	if res.Hits[0].ID == res.Hits[1].ID || res.Hits[0].ID == res.Hits[2].ID {
		t.Error("two targets or policies share a counter")
	}
	for _, bad := range []Pod{{Targets: []string{"orders"}}, {Named: []string{"a/b"}}, {Targets: make([]string, 9)}, {Named: make([]string, 257)}} {
		if _, err := New(set, testKeys(t), bad); err == nil {
			t.Errorf("accepted: %+v", bad)
		}
	}
}

func TestTargetsBeyondTheBoundAreTold(t *testing.T) {
	limits := "  limits: [{name: all, rates: [{limit: 1, window: 1s}]}]\n"
	pod := testPod
	for i := range 8 {
		pod.Targets = append(pod.Targets, fmt.Sprintf("shop/Service/s%d", i))
	}
	m, err := New(setOf(t, "  targetRefs: [{kind: Deployment, name: orders}]\n"+limits), testKeys(t), pod)
	if err != nil {
		t.Fatal(err)
	}
	if got := m.Dropped(); !slices.Equal(got, []string{"shop/Deployment/orders"}) || len(m.Targets()) != 8 {
		t.Error(got, m.Targets())
	}
}

func TestCost(t *testing.T) {
	m := matcherOf(t, "  limits: [{name: all, rates: [{limit: 100, window: 1s}], cost: {header: X-Cost, default: 3, max: 50}}]\n")
	for value, want := range map[string]uint64{
		"": 3, "0": 0, "7": 7, "007": 7, "50": 50, "51": 50, "99999999999999999999999999": 50, "18446744073709551615": 50, "18446744073709551617": 50,
		"-1": 3, "+1": 3, "1.5": 3, "1e2": 3, "1,2": 3, "x": 3, "٣": 3,
	} {
		req := get("/")
		req.Headers.Raw = []Header{{"x-cost", value}}
		var res Result
		if m.Match(req, &res); res.Hits[0].Cost != want {
			t.Errorf("%q: %d, want %d", value, res.Hits[0].Cost, want)
		}
	}
	var res Result
	if m.Match(get("/"), &res); res.Hits[0].Cost != 3 {
		t.Error(res.Hits[0].Cost)
	}
}

func TestShadowAndPercent(t *testing.T) {
	m := matcherOf(t, `  client: [{source: Header, name: x-key}]
  limits:
  - {name: shadow, mode: Shadow, rates: [{limit: 1, window: 1s}]}
  - {name: none, enforcePercent: 0, rates: [{limit: 1, window: 1s}]}
  - {name: some, enforcePercent: 30, rates: [{limit: 1, window: 1s}, {limit: 2, window: 1m}]}
  - {name: full, rates: [{limit: 1, window: 1s}]}
`)
	enforced := func(key string, random uint64) []bool {
		req := get("/")
		req.Random = random
		if key != "" {
			req.Headers.Joined = map[string]string{"x-key": key}
		}
		var res Result
		m.Match(req, &res)
		var out []bool
		for i := range res.Hits {
			out = append(out, res.Hits[i].Enforced)
		}
		return out
	}
	clients := 0
	for i := range 2000 {
		key := fmt.Sprint("client", i)
		first := enforced(key, uint64(i))
		if again := enforced(key, uint64(i)*7919+1); !slices.Equal(first, again) {
			t.Fatalf("%s: not the same each time", key)
		}
		if first[0] || first[1] || first[2] != first[3] || !first[4] {
			t.Fatal(first)
		}
		if first[2] {
			clients++
		}
	}
	if clients < 520 || clients > 680 { // 600 of 2000, five standard deviations about
		t.Errorf("%d clients of 2000", clients)
	}
	requests := 0
	for i := range uint64(10_000) {
		if enforced("", i)[2] {
			requests++
		}
	}
	if requests != 3000 {
		t.Errorf("%d requests without a client", requests)
	}
}

const mixed = `  client: [{source: Principal}, {source: Header, name: x-key}, {source: Header, name: x-tenant, reveal: true}, {source: RemoteAddress, ipv4Prefix: 24}]
  limits:
  - name: each
    counters: [Client, Endpoint, "Header:x-region", Host]
    when: {paths: [{type: Template, value: "/orders/{id}"}, {type: Prefix, value: /}]}
    rates: [{limit: 10, window: 1s}, {limit: 100, window: 1m, algorithm: TokenBucket}, {limit: 9, period: Month, algorithm: Calendar, timeZone: Asia/Tokyo}]
    overrides:
    - {clients: [{source: Header, name: x-key, value: a}], rates: [{limit: 11, window: 1s}]}
    - {clients: [{source: Header, name: x-tenant, value: a}], unlimited: true}
    - {clients: [{source: RemoteAddress, value: 10.0.0.0/9}], rates: [{limit: 12, window: 1s}, {limit: 120, window: 1m, algorithm: TokenBucket}]}
  - {name: all, counters: [Method], rates: [{limit: 4, window: 1s}]}
`

func drawRequest(t *rapid.T) *Request {
	value := rapid.SampledFrom([]string{"", "a", "b", "a,b", "\xff", strings.Repeat("long", 100)})
	req := get(rapid.SampledFrom([]string{"/", "/orders/7", "/x/../orders%2F8?y", "/\xff"}).Draw(t, "path"))
	req.Method = rapid.SampledFrom([]string{"GET", "POST", "X"}).Draw(t, "method")
	req.Host = rapid.SampledFrom([]string{"", "A.b:80", strings.Repeat("h", 300)}).Draw(t, "host")
	req.Principal = value.Draw(t, "principal")
	for _, name := range []string{"x-key", "x-tenant", "x-region"} {
		if v := value.Draw(t, name); v != "" {
			req.Headers.Raw = append(req.Headers.Raw, Header{name, v})
		}
	}
	req.Peer = rapid.SampledFrom([]netip.Addr{{}, netip.MustParseAddr("10.1.2.3"), netip.MustParseAddr("10.200.2.3"), netip.MustParseAddr("2001:db8::1")}).Draw(t, "peer")
	return req
}

// Pod and owner agree: what a pod charges, the owner finds by the identity alone, with the same amount.
func TestOwnerResolvesWhatThePodCharges(t *testing.T) {
	set := setOf(t, "  targetRefs: [{kind: Deployment, name: orders}]\n"+mixed)
	keys := testKeys(t)
	m, err := New(set, keys, testPod)
	if err != nil {
		t.Fatal(err)
	}
	var res Result // reused: what one request left must not show in the next
	rapid.Check(t, func(t *rapid.T) {
		m.Match(drawRequest(t), &res)
		for i := range res.Hits {
			h := &res.Hits[i]
			id, err := wirev1.DecodeIdentity(h.Identity)
			if err != nil {
				t.Fatal(err)
			}
			got, ok := set.Resolve(id)
			if !ok || got.Rule != h.Rule || got.Rate != h.Rate || got.Limit != h.Limit || id.Target != h.Target || keys.ID(h.Identity) != h.ID {
				t.Fatalf("%+v: resolved to %+v, %v", id, got, ok)
			}
			over, err := wirev1.DecodeIdentity(h.Overflow.Identity)
			if err != nil {
				t.Fatal(err)
			}
			if got, ok := set.Resolve(over); !ok || got.Rule != h.Rate.Rule || keys.ID(h.Overflow.Identity) != h.Overflow.ID {
				t.Fatalf("overflow %+v: resolved to %+v, %v", over, got, ok)
			}
		}
	})
}

// A Result may be used again: the same request gives the same hits as with a new one.
func TestAResultCarriesNothingOver(t *testing.T) {
	m := matcherOf(t, mixed)
	var used Result
	rapid.Check(t, func(t *rapid.T) {
		req := drawRequest(t)
		m.Match(drawRequest(t), &used)
		m.Match(req, &used)
		var fresh Result
		m.Match(req, &fresh)
		if len(used.Hits) != len(fresh.Hits) {
			t.Fatalf("%d hits, %d with a new Result", len(used.Hits), len(fresh.Hits))
		}
		for i := range used.Hits {
			if used.Hits[i].ID != fresh.Hits[i].ID || used.Hits[i].Rule != fresh.Hits[i].Rule {
				t.Fatalf("%q, new %q", used.Hits[i].Identity, fresh.Hits[i].Identity)
			}
		}
	})
}

func TestMatchingDoesNotAllocate(t *testing.T) {
	m, req := benchmarkCase(t)
	var res Result
	m.Match(req, &res)
	if n := testing.AllocsPerRun(200, func() { m.Match(req, &res) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestAResultsMemoryDoesNotGrow(t *testing.T) {
	m, req := benchmarkCase(t)
	var res Result
	for range 1000 {
		m.Match(req, &res)
	}
	if n := cap(res.scan.scratch) + cap(res.ids) + cap(res.Hits); n > 4096 {
		t.Errorf("%d after 1000 requests", n)
	}
}

func benchmarkCase(tb testing.TB) (*Matcher, *Request) {
	m := matcherOf(tb, mixed)
	req := get("/orders/7?page=2")
	req.Headers.Joined = map[string]string{
		"x-key": "some-api-key", "x-region": "eu-central-1", "user-agent": "curl/8", "accept": "*/*", ":path": "/orders/7",
	}
	return m, req
}

func BenchmarkMatch(b *testing.B) {
	b.Run("one counter", func(b *testing.B) {
		m := clientsOf(b, "{source: Header, name: x-key}")
		_, req := benchmarkCase(b)
		run(b, m, req)
	})
	b.Run("five counters", func(b *testing.B) {
		m, req := benchmarkCase(b)
		run(b, m, req)
	})
}

func run(b *testing.B, m *Matcher, req *Request) {
	b.ReportAllocs()
	var res Result
	for b.Loop() {
		m.Match(req, &res)
	}
}

// Any request is matched without a panic, and each hit's identity is one that owners accept.
func FuzzMatch(f *testing.F) {
	f.Add("GET", "/orders/7", "a.b:80", "k", "1.2.3.4, 5.6.7.8", "7")
	f.Add("", "%2f;..", "[::1", "\xff,", "[::1]:x,", "-")
	m := matcherOf(f, mixed, `  client: [{source: RemoteAddress, trustedHops: 2}]
  limits: [{name: all, counters: [Client, Host, Method, "Header:x-key:Last"], rates: [{limit: 100, window: 1s}], cost: {header: x-cost, max: 9}}]
`)
	f.Fuzz(func(t *testing.T, method, path, host, key, forwarded, cost string) {
		req := &Request{Method: method, Path: path, Host: host, Headers: Headers{Raw: []Header{
			{"x-key", key}, {"x-forwarded-for", forwarded}, {"x-cost", cost}, {"x-key", cost},
		}}, Peer: netip.MustParseAddr("192.0.2.7")}
		var res Result
		m.Match(req, &res)
		if len(res.Hits) == 0 {
			t.Fatal("no hit")
		}
		for i := range res.Hits {
			id, err := wirev1.DecodeIdentity(res.Hits[i].Identity)
			if err != nil || policy.DescribeDimension(&id.Dimensions[0]) == "" {
				t.Fatalf("%q: %v", res.Hits[i].Identity, err)
			}
			if c := res.Hits[i].Cost; c > 9 {
				t.Fatalf("cost %d", c)
			}
		}
	})
}

// One request with long headers does not make a sidecar larger for ever.
func TestMemoryOfALongRequestIsLetGo(t *testing.T) {
	s := scan{scratch: make([]byte, 0, keptBuffer+1), pathBuf: make([]byte, 0, keptBuffer+1)}
	s.reset(&Request{})
	if cap(s.scratch) > keptBuffer || cap(s.pathBuf) > keptBuffer {
		t.Errorf("%d and %d bytes are kept", cap(s.scratch), cap(s.pathBuf))
	}
}
