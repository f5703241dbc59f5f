package system

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/test/parts"
	"github.com/weirproxy/weir/test/world"
)

// One limit a case, each on paths of its own and over an hour, so that a test counts exactly.
const casePolicies = `apiVersion: weirproxy.dev/v1alpha1
kind: QuotaPolicy
metadata: {name: cases, namespace: shop}
spec:
  targetRefs: [{kind: Service, name: orders}]
  client: [{source: Header, name: x-api-key}]
  exclude: [CORSPreflight, HealthCheck]
  response: {cors: true}
  limits:
  - {name: browser, when: {paths: [{type: Prefix, value: /browser}]}, rates: [{limit: 3, window: 1h}]}
  - {name: panel, when: {paths: [{value: /admin/panel}]}, rates: [{limit: 18, window: 1h}]}
  - {name: repeated, when: {paths: [{type: Prefix, value: /repeated}]}, counters: [Client], rates: [{limit: 4, window: 1h}]}
  - {name: tag-first, when: {paths: [{type: Prefix, value: /tags}]}, counters: ["Header:x-tag:First"], rates: [{limit: 100, window: 1h}]}
  - {name: tag-last, when: {paths: [{type: Prefix, value: /tags}]}, counters: ["Header:x-tag:Last"], rates: [{limit: 100, window: 1h}]}
  - {name: tag-all, when: {paths: [{type: Prefix, value: /tags}]}, counters: ["Header:x-tag"], rates: [{limit: 100, window: 1h}]}
  - {name: bytes, when: {paths: [{type: Prefix, value: /bytes}]}, counters: [Client], rates: [{limit: 2, window: 1h}]}
  - {name: item, when: {paths: [{type: Template, value: "/items/{id}"}]}, counters: [Endpoint], rates: [{limit: 4, window: 1h}]}
  - {name: narrow, when: {paths: [{type: Prefix, value: /named}]}, counters: [Client], rates: [{limit: 3, window: 1h}]}
  - {name: broad, when: {paths: [{type: Prefix, value: /named}]}, rates: [{limit: 4, window: 1h}]}
  - {name: hourly, when: {paths: [{type: Prefix, value: /hourly}]}, rates: [{limit: 3, period: Hour, algorithm: Calendar, timeZone: Asia/Kolkata}]}
  - {name: explained, when: {paths: [{type: Prefix, value: /explained}]}, counters: [Client], rates: [{limit: 3, window: 1h}]}
  - {name: alive, when: {paths: [{type: Prefix, value: /alive}]}, rates: [{limit: 1000000, window: 1h}]}
---
apiVersion: weirproxy.dev/v1alpha1
kind: QuotaPolicy
metadata: {name: peers, namespace: shop}
spec:
  targetRefs: [{kind: Service, name: orders}]
  client: [{source: RemoteAddress}]
  limits:
  - {name: peer, when: {paths: [{type: Prefix, value: /peer}]}, counters: [Client], rates: [{limit: 3, window: 1h}]}
  - {name: grpc, when: {paths: [{type: Prefix, value: /shop.Orders}]}, rates: [{limit: 3, window: 1h}]}
---
apiVersion: weirproxy.dev/v1alpha1
kind: QuotaPolicy
metadata: {name: forwarded, namespace: shop}
spec:
  targetRefs: [{kind: Service, name: orders}]
  client: [{source: RemoteAddress, trustedHops: 1, ipv4Prefix: 24, ipv6Prefix: 64}]
  limits:
  - {name: forwarded, when: {paths: [{type: Prefix, value: /forwarded}]}, counters: [Client], rates: [{limit: 3, window: 1h}]}
---
apiVersion: weirproxy.dev/v1alpha1
kind: QuotaPolicy
metadata: {name: local, namespace: shop}
spec:
  targetRefs: [{kind: Service, name: orders}]
  client: [{source: RemoteAddress, trustedHops: 2}]
  limits:
  - {name: local, when: {paths: [{type: Prefix, value: /local}]}, counters: [Client], rates: [{limit: 3, window: 1h}]}
`

// fronts is a pod with several Envoys before its one sidecar.
type fronts struct {
	*world.World // reports to the step's own test
	whole        *world.World
	pod          *world.Pod
	// joined sends repeated headers joined and normalises paths; raw does neither, logs what weir says
	// of a request, and fails closed. nobody names a target that no policy is on.
	joined, raw, nobody *parts.Envoy
}

const refusalLog = "%REQ(x-api-key)% %DYNAMIC_METADATA(envoy.filters.http.ext_authz:weir_outcome)% " +
	"%DYNAMIC_METADATA(envoy.filters.http.ext_authz:weir_limit)%\n"

// All that concerns the form of requests and answers, on one installation.
func TestBehindEnvoy(t *testing.T) { behindEnvoy(t, "own") }

// The same by the other check server.
func TestBehindEnvoyWithGRPC(t *testing.T) { behindEnvoy(t, "grpc") }

// behindEnvoy runs all steps. The last ones take the installation apart.
func behindEnvoy(t *testing.T, server string) {
	w := world.Settled(t, 0, 1, casePolicies)
	w.AddPod("--server", server)
	w.Ready()
	f := &fronts{World: w, whole: w, pod: w.Pods[0], joined: w.Pods[0].Envoy}
	f.raw = w.Front(f.pod, parts.EnvoyOpts{RawPaths: true, AccessLog: refusalLog},
		parts.Authz{EncodeRawHeaders: true, Timeout: 2 * time.Second, StatusOnError: http.StatusServiceUnavailable})
	f.nobody = w.Front(f.pod, parts.EnvoyOpts{}, parts.Authz{
		Timeout: 2 * time.Second, FailureModeAllow: true,
		ContextExtensions: map[string]string{"weir.target": "shop/Service/nobody"},
	})
	for _, step := range []struct {
		name string
		test func(*testing.T, *fronts)
	}{
		{"Case08PreflightsAndProbesAreFreeAndRefusalsReadable", testPreflights},
		{"Case09SpellingsOfAPath", testSpellings},
		{"Case10RepeatedHeaders", testRepeatedHeaders},
		{"Case11AnyBytesAreAValue", testBytes},
		{"Case12QueryIsNoPartOfAnEndpoint", testQuery},
		{"Case13ForwardedAddresses", testForwarded},
		{"Case13ProxyOnTheSameHost", testLocalProxy},
		{"Case14PrefixesOfAddresses", testPrefixes},
		{"Case15NoPolicyIsCounted", testNoPolicy},
		{"Case21GRPCClient", testGRPC},
		{"Case22TheLimitThatRefusedIsNamed", testNamed},
		{"Case23Sockets", testSockets},
		{"CalendarLimit", testCalendar},
		{"ExplainChargesNothing", testExplain},
		{"Validate", testValidate},
		{"Apply", testApply},
		{"Healthchecks", testHealthchecks},
		{"Case20FrozenSidecar", testFrozen},
		{"Case20SidecarGone", testGone},
		{"RestartWithoutKafkaKeepsPolicies", testRestartWithoutKafka},
		{"Case15NoPolicyDegradesReadiness", testNoPolicyReadiness},
	} {
		t.Run(step.name, func(t *testing.T) { step.test(t, f.in(t)) })
	}
}

// in returns f for one step: what fails ends that step, and what it starts ends with it, but for what
// is started through f.whole.
func (f *fronts) in(t *testing.T) *fronts {
	step, w := *f, *f.whole
	w.T = t
	step.World = &w
	return &step
}

// expect sends a request and wants a status.
func (f *fronts) expect(t *testing.T, e *parts.Envoy, status int, method, path string, header ...string) world.Answer {
	t.Helper()
	a := f.Send(e, method, path, header...)
	if a.Status != status {
		t.Errorf("%s %s %q: %d %s, want %d", method, path, header, a.Status, a.Body, status)
	}
	return a
}

// expectForwarded sends a request with this X-Forwarded-For and wants a status.
func (f *fronts) expectForwarded(t *testing.T, e *parts.Envoy, status int, path, forwarded string) {
	t.Helper()
	if a := f.SendFrom(proxy, e, "GET", path, "x-forwarded-for", forwarded); a.Status != status {
		t.Errorf("%s, forwarded for %s: %d %s, want %d", path, forwarded, a.Status, a.Body, status)
	}
}

// proxy is where a trusted proxy in front of Envoy sends from.
const proxy = "127.0.0.2"

// counters waits until Redis has the units of a limit, and returns its counters.
func (f *fronts) counters(t *testing.T, limit string, units int) []world.Counter {
	t.Helper()
	f.ExpectTotal(limit, units)
	cs, err := f.Counters(limit)
	if err != nil {
		t.Fatal(err)
	}
	return cs
}

func testPreflights(t *testing.T, f *fronts) {
	const page = "https://shop.example"
	for range 5 {
		f.expect(t, f.joined, 200, "OPTIONS", "/browser", "origin", page, "access-control-request-method", "GET")
		f.expect(t, f.raw, 200, "OPTIONS", "/browser", "origin", page, "access-control-request-method", "GET")
		f.expect(t, f.joined, 200, "GET", "/browser", "user-agent", "kube-probe/1.31")
		f.expect(t, f.raw, 200, "HEAD", "/browser", "user-agent", "ELB-HealthChecker/2.0")
	}
	f.expect(t, f.joined, 200, "OPTIONS", "/browser") // no preflight: it asks nothing for a page
	f.expect(t, f.joined, 200, "GET", "/browser", "origin", page)
	f.expect(t, f.raw, 200, "GET", "/browser", "origin", page)
	for _, e := range []*parts.Envoy{f.joined, f.raw} {
		a := f.expect(t, e, 429, "GET", "/browser", "origin", page)
		if a.Header.Get("access-control-allow-origin") != page ||
			!strings.Contains(a.Header.Get("access-control-expose-headers"), "Retry-After") || a.Header.Get("vary") != "Origin" {
			t.Errorf("a page cannot read the refusal: %v", a.Header)
		}
		f.expect(t, e, 200, "OPTIONS", "/browser", "origin", page, "access-control-request-method", "GET")
	}
	f.counters(t, "browser", 3)
}

func testSpellings(t *testing.T, f *fronts) {
	spellings := []string{
		"/admin/panel", "/admin//panel", "/admin/./panel", "/x/../admin/panel", "/admin/%70anel",
		"/admin%2Fpanel", "/admin/panel;v=1", "/admin/panel?x=/y", "//admin/panel/",
	}
	for _, s := range spellings {
		f.expect(t, f.joined, 200, "GET", s)
		f.expect(t, f.raw, 200, "GET", s)
	}
	f.counters(t, "panel", 2*len(spellings))
	for _, s := range spellings {
		f.expect(t, f.joined, 429, "GET", s)
		f.expect(t, f.raw, 429, "GET", s)
	}
	for _, other := range []string{"/admin/panels", "/admin", "/admin/panel/x", "/admin/%2570anel"} {
		f.expect(t, f.joined, 200, "GET", other)
		f.expect(t, f.raw, 200, "GET", other)
	}
}

func testRepeatedHeaders(t *testing.T, f *fronts) {
	for _, e := range []*parts.Envoy{f.joined, f.raw} {
		f.expect(t, e, 200, "GET", "/repeated", "x-api-key", "a", "x-api-key", "b")
		f.expect(t, e, 200, "GET", "/repeated", "x-api-key", "a,b")
	}
	f.expect(t, f.joined, 429, "GET", "/repeated", "x-api-key", "a", "x-api-key", "b")
	f.expect(t, f.raw, 429, "GET", "/repeated", "x-api-key", "a", "x-api-key", "b")
	if cs := f.counters(t, "repeated", 4); len(cs) != 1 {
		t.Errorf("%d counters for one client", len(cs))
	}
	for _, e := range []*parts.Envoy{f.joined, f.raw} {
		f.expect(t, e, 200, "GET", "/tags", "x-tag", "a", "x-tag", "z")
		f.expect(t, e, 200, "GET", "/tags", "x-tag", "b", "x-tag", "z")
	}
	for limit, want := range map[string]int{"tag-first": 2, "tag-last": 1, "tag-all": 2} {
		if cs := f.counters(t, limit, 4); len(cs) != want {
			t.Errorf("%s: %d counters, want %d", limit, len(cs), want)
		}
	}
}

// Raw headers tell clients apart by any byte. Joined ones are text to Envoy: it replaces what is no
// UTF-8, and yet the check is answered.
func testBytes(t *testing.T, f *fronts) {
	for _, client := range []string{"caf\xe9", "caf\xe8", "\xff\xfe"} {
		f.expect(t, f.raw, 200, "GET", "/bytes", "x-api-key", client)
		f.expect(t, f.raw, 200, "GET", "/bytes", "x-api-key", client)
		f.expect(t, f.raw, 429, "GET", "/bytes", "x-api-key", client)
	}
	for range 2 {
		f.expect(t, f.joined, 200, "GET", "/bytes", "x-api-key", "\xff joined")
	}
	f.expect(t, f.joined, 429, "GET", "/bytes", "x-api-key", "\xff joined")
	if n := f.pod.Stat("ext_authz.error"); n != 0 {
		t.Errorf("%d checks failed", n)
	}
}

func testQuery(t *testing.T, f *fronts) {
	for i, e := range []*parts.Envoy{f.joined, f.raw} {
		f.expect(t, e, 200, "GET", fmt.Sprintf("/items/%d?from=/other/%d", i, i))
		f.expect(t, e, 200, "GET", fmt.Sprintf("/items/a%d?b?c=%%2F", i))
	}
	f.expect(t, f.joined, 429, "GET", "/items/9?new=1")
	f.expect(t, f.joined, 200, "GET", "/other?x=/items/9")
	cs := f.counters(t, "item", 4)
	if len(cs) != 1 || len(cs[0].Identity.Dimensions) != 1 {
		t.Fatalf("counters %+v, want one by endpoint", cs)
	}
	d := cs[0].Identity.Dimensions[0]
	if d.Kind != wirev1.DimEndpoint || !strings.HasSuffix(d.Value, " /items/{id}") {
		t.Errorf("counted by %+v", d)
	}
}

// A client may write what it likes into X-Forwarded-For: only what trusted proxies appended counts.
func testForwarded(t *testing.T, f *fronts) {
	for i := range 3 {
		f.expectForwarded(t, f.joined, 200, "/peer", fmt.Sprintf("198.51.100.%d", i))
		f.expectForwarded(t, f.raw, 200, "/forwarded", fmt.Sprintf("10.9.8.%d, 203.0.113.7", i))
	}
	f.expectForwarded(t, f.raw, 429, "/peer", "198.51.100.77")
	f.expectForwarded(t, f.joined, 429, "/forwarded", "192.0.2.1, 203.0.113.7")
	f.expectForwarded(t, f.joined, 200, "/forwarded", "203.0.113.7, 192.0.2.1")
}

func testPrefixes(t *testing.T, f *fronts) {
	for i := range 3 {
		f.expectForwarded(t, f.joined, 200, "/forwarded", fmt.Sprintf("2001:db8:1:2:%d::1", i))
		f.expectForwarded(t, f.raw, 200, "/forwarded", fmt.Sprintf("198.18.5.%d", i))
	}
	f.expectForwarded(t, f.raw, 429, "/forwarded", "2001:db8:1:2:ffff::9")
	f.expectForwarded(t, f.joined, 200, "/forwarded", "2001:db8:1:3::1")
	f.expectForwarded(t, f.joined, 429, "/forwarded", "198.18.5.200")
	f.expectForwarded(t, f.raw, 200, "/forwarded", "198.18.6.200")
}

// Of a proxy on 127.0.0.1 itself Envoy appends its own address: one hop more, as docs/envoy.md says.
func testLocalProxy(t *testing.T, f *fronts) {
	for _, client := range []string{"203.0.113.7", "198.51.100.8"} {
		for i := range 3 {
			f.expect(t, f.joined, 200, "GET", "/local", "x-forwarded-for", fmt.Sprintf("10.9.8.%d, %s", i, client))
		}
		f.expect(t, f.raw, 429, "GET", "/local", "x-forwarded-for", client)
	}
}

func testNoPolicy(t *testing.T, f *fronts) {
	const metric, outcome = "weir_sidecar_checks_total", `outcome="no_policy"`
	before := f.Metric(f.pod.Admin, metric, outcome)
	for range 4 {
		f.expect(t, f.nobody, 200, "GET", "/admin/panel")
	}
	if got := f.Metric(f.pod.Admin, metric, outcome) - before; got != 4 {
		t.Errorf("%.0f of 4 requests counted as without a policy", got)
	}
}

// testNoPolicyReadiness comes last: it takes the policies away.
func testNoPolicyReadiness(t *testing.T, f *fronts) {
	f.Write("p0.yaml", "")
	parts.Eventually(t, world.Patience, "readiness to say that no policy is on the target", func() error {
		status, body, err := world.Get("http://" + f.pod.Admin + "/readyz")
		if err == nil && (status != 200 || !strings.Contains(body, "no policy") || !strings.Contains(body, world.Target)) {
			err = fmt.Errorf("%d: %s", status, body)
		}
		return err
	})
	f.expect(t, f.raw, 200, "GET", "/admin/panel")
	if f.Metric(f.pod.Admin, "weir_sidecar_degraded_reason", `reason="no_policy"`) != 1 {
		t.Error("no metric says that no policy is on the target")
	}
}
