package check

import (
	"bytes"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/internal/policy"
	"github.com/weirproxy/weir/internal/quota"
	"github.com/weirproxy/weir/sidecar/ledger"
	"github.com/weirproxy/weir/sidecar/match"
	"github.com/weirproxy/weir/sidecar/metrics"
)

const target = "shop/Deployment/orders"

// rig is a checker under policies, in virtual time, with a header that is always fresh and one pod.
type rig struct {
	*Checker
	ledger *ledger.Ledger
	limits map[*policy.Limit]*metrics.LimitCounters
	names  map[*policy.Limit]string
	reg    *prometheus.Registry
	target *Target
	known  map[wirev1.ID]bool
	now    atomic.Int64
}

func newRig(tb testing.TB, slots int, specs ...string) *rig {
	tb.Helper()
	r := &rig{reg: prometheus.NewRegistry(), known: map[wirev1.ID]bool{}, limits: map[*policy.Limit]*metrics.LimitCounters{}, names: map[*policy.Limit]string{}}
	r.now.Store(int64(time.Hour))
	r.target = &Target{Name: target, Fresh: new(quota.Fresh), Fleet: new(quota.Fleet)}
	r.target.Fleet.Set(1)
	r.ledger = ledger.New(ledger.Config{Slots: slots, Prepare: func(s *ledger.Slot) {
		s.Counter = new(quota.Counter)
		s.Counter.Init(s.Cell, s.Rule, s.Fresh, s.Fleet, s.Made, r.clock())
	}})
	m := metrics.New(r.reg, metrics.Sources{})
	r.Checker = New(Config{
		Ledger: r.ledger, Metrics: m, Clock: r.clock, MaxInFlight: 100,
		Known: func(id wirev1.ID) bool { return r.known[id] },
	})
	r.tick(0)
	matcher, set := matcherOf(tb, specs...)
	for _, p := range set.Policies() {
		for _, l := range p.Limits {
			r.limits[l], r.names[l] = m.Limit(p.Name, l.Name), LimitName(l)
		}
	}
	r.Install(&Snapshot{Matcher: matcher, Targets: map[string]*Target{target: r.target}, Limits: r.limits, Names: r.names})
	return r
}

func matcherOf(tb testing.TB, specs ...string) (*match.Matcher, *policy.Set) {
	tb.Helper()
	keys, err := wirev1.NewKeys(bytes.Repeat([]byte{7}, wirev1.KeySize))
	if err != nil {
		tb.Fatal(err)
	}
	var all []*policy.Policy
	for i, spec := range specs {
		text := fmt.Sprintf("apiVersion: weirproxy.dev/v1alpha1\nkind: QuotaPolicy\nmetadata: {name: p%d, namespace: shop}\n"+
			"spec:\n  targetRefs: [{kind: Deployment, name: orders}]\n%s", i, spec)
		docs, err := policy.Parse("test", []byte(text))
		if err != nil {
			tb.Fatal(err)
		}
		key, msg, err := policy.Encode(policy.OriginFile, docs[0], keys, nil)
		if err != nil {
			tb.Fatal(err)
		}
		p, err := policy.Decode(key, int64(i), msg)
		if err != nil {
			tb.Fatal(err)
		}
		all = append(all, p)
	}
	set := policy.NewSet(all)
	m, err := match.New(set, keys, match.Pod{Namespace: "shop", OwnerKind: "Deployment", OwnerName: "orders"})
	if err != nil {
		tb.Fatal(err)
	}
	return m, set
}

func (r *rig) clock() quota.Time { return quota.Time(r.now.Load()) }

// tick lets time pass, with a header at its end.
func (r *rig) tick(d time.Duration) {
	now := quota.Time(r.now.Add(int64(d)))
	r.target.Fresh.Observe(quota.Header{Sequence: uint64(now), Received: now, Flush: 50 * time.Millisecond, Tick: 25 * time.Millisecond})
}

func request(client string) *match.Request {
	return &match.Request{
		Method: "GET", Path: "/orders/7?x=1", Host: "shop.example", Peer: netip.MustParseAddr("192.0.2.7"),
		Headers: match.Headers{Joined: map[string]string{"x-api-key": client}},
	}
}

func (r *rig) check(client string) Answer {
	var a Answer
	r.Check(request(client), &a)
	return a
}

func (r *rig) admitted(tb testing.TB, client string) (passed int) {
	tb.Helper()
	for range 1000 {
		a := r.check(client)
		if !a.Allow() {
			return passed
		}
		passed++
	}
	tb.Fatal("nothing is refused")
	return 0
}

const byKey = "  client: [{source: Header, name: x-api-key}]\n"

const each10 = byKey + "  limits: [{name: each, counters: [Client], rates: [{limit: 10, window: 1s}]}]\n"

// Case 1: refused requests charge nothing, so a client at twice its limit gets all of its limit, second
// after second.
func TestCase01TwiceTheLimitGetsTheWholeLimit(t *testing.T) {
	r := newRig(t, 100, each10)
	passed := 0
	const seconds = 20
	for range seconds * 20 { // 20 a second
		if a := r.check("a"); a.Allow() {
			passed++
		}
		r.tick(50 * time.Millisecond)
	}
	if passed < seconds*9 || passed > seconds*10+10 {
		t.Errorf("%d of %d passed, want about %d", passed, seconds*20, seconds*10)
	}
}

// Case 2: the narrow limit refuses, and the broad one is charged only what passed.
func TestCase02NarrowRefusalLeavesBroadUncharged(t *testing.T) {
	r := newRig(t, 100, byKey+`  limits:
  - {name: broad, rates: [{limit: 1000, window: 1s}]}
  - {name: narrow, counters: [Client], rates: [{limit: 5, window: 1s}]}
`)
	for range 50 {
		r.check("a")
	}
	charged := map[string]uint64{}
	r.ledger.TakeMade(func(s *ledger.Slot) { charged[s.Limit] = s.Cell.Admitted() })
	if charged["shop/p0/broad"] != 5 || charged["shop/p0/narrow"] != 5 {
		t.Errorf("charged = %v, want 5 each", charged)
	}
}

// Refused requests are no usage, but they are demand: shares follow it.
func TestRefusedDemandIsToBeReportedToo(t *testing.T) {
	r := newRig(t, 100, each10)
	r.admitted(t, "a")
	r.ledger.TakeDirty(func(*ledger.Slot) {})
	r.check("a")
	seen := 0
	r.ledger.TakeDirty(func(s *ledger.Slot) {
		if seen++; s.Cell.Admitted() != 10 || s.Cell.Offered() != 12 {
			t.Errorf("%d admitted, %d offered", s.Cell.Admitted(), s.Cell.Offered())
		}
	})
	if seen != 1 {
		t.Error("a counter whose demand grew is not marked")
	}
}

// Case 22: the answer is of the limit that refused, not of one that passed.
func TestCase22TheAnswerNamesTheLimitThatRefused(t *testing.T) {
	r := newRig(t, 100, byKey+`  limits:
  - {name: broad, rates: [{limit: 1000, window: 1s}]}
  - {name: narrow, counters: [Client], rates: [{limit: 5, window: 1s}, {limit: 50, window: 1m}]}
`)
	r.admitted(t, "a")
	a := r.check("a")
	if a.Outcome != metrics.Refused || a.Limit.Name != "narrow" || a.Rate.Title != a.Limit.Rates[0].Title || a.RetryAfter <= 0 || a.Remaining != 0 {
		t.Errorf("answer = %+v", a)
	}
	if got := testutil.ToFloat64(r.limits[a.Limit].Refused); got != 2 {
		t.Errorf("the limit counts %v refusals, want 2", got)
	}
	a = r.check("b")
	if a.Outcome != metrics.Allowed || a.Limit.Name != "narrow" || a.Remaining != 4 {
		t.Errorf("the tightest limit of one that passed = %+v", a)
	}
}

// Case 15: no policy is allowed, and counted.
func TestCase15NoPolicyIsAllowedAndCounted(t *testing.T) {
	r := newRig(t, 10, each10)
	req := request("a")
	req.Target = "shop/Service/unknown"
	var a Answer
	r.Check(req, &a)
	if !a.Allow() || a.Outcome != metrics.NoPolicy {
		t.Errorf("answer = %+v", a)
	}
	want := "# HELP weir_sidecar_checks_total Checks by outcome.\n# TYPE weir_sidecar_checks_total counter\n"
	for _, o := range []metrics.Outcome{
		metrics.Allowed, metrics.Failed, metrics.Malformed, metrics.NoLimit, metrics.NoPolicy, metrics.NotLoaded,
		metrics.Overloaded, metrics.Refused, metrics.RefusedClient, metrics.Uncounted,
	} {
		n := 0
		if o == metrics.NoPolicy {
			n = 1
		}
		want += fmt.Sprintf("weir_sidecar_checks_total{outcome=%q} %d\n", o.String(), n)
	}
	if err := testutil.GatherAndCompare(r.reg, bytes.NewBufferString(want), "weir_sidecar_checks_total"); err != nil {
		t.Error(err)
	}
}

// Case 18: at a full ledger established counters are unaffected, and new keys share one counter.
func TestCase18NewKeysAtAFullLedgerShareTheOverflowCounter(t *testing.T) {
	r := newRig(t, 3, each10)
	for _, c := range []string{"a", "b", "c"} {
		r.check(c)
	}
	passed := 0
	for i := range 1000 {
		if a := r.check(fmt.Sprintf("flood %d", i)); a.Allow() {
			passed++
		}
	}
	if passed != 10 {
		t.Errorf("%d of the flood passed, want the limit of one counter", passed)
	}
	if got := r.admitted(t, "a"); got != 9 {
		t.Errorf("an established client gets %d more, want 9", got)
	}
	if slots, _ := r.ledger.Size(); slots != 4 {
		t.Errorf("%d slots, want 3 and the overflow counter", slots)
	}
}

func TestLimitsInOverflowAtTheOwnerTakeNewKeysTogether(t *testing.T) {
	r := newRig(t, 100, each10)
	r.check("established")
	r.target.SetOverflow([]string{"shop/p0/each"})
	passed := 0
	for i := range 30 {
		if a := r.check(fmt.Sprintf("new %d", i)); a.Allow() {
			passed++
		}
	}
	if passed != 10 || r.admitted(t, "established") != 9 {
		t.Errorf("%d new keys passed, want 10", passed)
	}
	var res match.Result
	r.Snapshot().Matcher.Match(request("known"), &res)
	r.known[res.Hits[0].ID] = true
	if a := r.check("known"); !a.Allow() {
		t.Error("a key with a record is charged to the overflow counter")
	}
	r.target.SetOverflow(nil)
	if a := r.check("new again"); !a.Allow() {
		t.Error("the overflow is over, and a new key is still charged to its counter")
	}
}

func TestShadowLimitsRefuseNothingAndSaySo(t *testing.T) {
	r := newRig(t, 100, byKey+`  limits:
  - {name: trial, mode: Shadow, counters: [Client], rates: [{limit: 3, window: 1s}, {limit: 30, window: 1m}]}
`)
	would := 0
	var last Answer
	for range 10 {
		last = r.check("a")
		if !last.Allow() {
			t.Fatal("a shadow limit refused")
		}
		if last.WouldRefuse != nil {
			would++
		}
	}
	if would != 7 || last.WouldRefuse.Limit.Name != "trial" {
		t.Errorf("%d would have been refused, want 7", would)
	}
	for _, c := range r.limits {
		if got := testutil.ToFloat64(c.WouldRefuse); got != 7 {
			t.Errorf("the metric says %v", got)
		}
	}
}

func TestAnOverriddenClientIsToldItsOwnAmount(t *testing.T) {
	r := newRig(t, 100, byKey+`  limits:
  - name: each
    counters: [Client]
    rates: [{limit: 10, window: 1s}]
    overrides: [{clients: [{source: Header, name: x-api-key, value: acme}], rates: [{limit: 2, window: 1s}]}]
`)
	if got := r.admitted(t, "acme"); got != 2 {
		t.Fatalf("%d passed, want the override's 2", got)
	}
	a := r.check("acme")
	if a.Rule.Limit != 2 || a.Rate == a.Limit.Rates[0] {
		t.Errorf("refused with %q of limit %v", a.Rate.Title, a.Rule.Limit)
	}
}

func TestUnknownClientsAreRefusedByPolicy(t *testing.T) {
	r := newRig(t, 100, each10+"  unknownClients: Refuse\n")
	req := request("")
	req.Headers.Joined = nil
	var a Answer
	r.Check(req, &a)
	if a.Allow() || a.Outcome != metrics.RefusedClient || a.Policy.Name != "shop/p0" || a.Limit == nil {
		t.Errorf("answer = %+v", a)
	}
}

func TestWithoutPoliciesAndWhenTooBusyItFails(t *testing.T) {
	r := newRig(t, 100, each10)
	empty := New(r.config)
	var a Answer
	if empty.Check(request("a"), &a); a.Outcome != metrics.NotLoaded || !a.Failed() {
		t.Errorf("never loaded: %v", a.Outcome)
	}
	r.inFlight.Store(100)
	if a := r.check("a"); a.Outcome != metrics.Overloaded || !a.Failed() {
		t.Errorf("too many at once: %v", a.Outcome)
	}
	if r.inFlight.Load() != 100 {
		t.Error("a check that was turned away is still counted")
	}
}

func TestAPanicFailsOneCheckAndNoMore(t *testing.T) {
	r := newRig(t, 100, each10)
	good := r.Snapshot()
	r.Install(&Snapshot{Matcher: good.Matcher}) // targets are missing: nil is dereferenced
	if a := r.check("a"); a.Outcome != metrics.Failed {
		t.Fatalf("outcome = %v", a.Outcome)
	}
	r.Install(good)
	if a := r.check("a"); !a.Allow() || r.inFlight.Load() != 0 {
		t.Errorf("the next check: %v, %d in flight", a.Outcome, r.inFlight.Load())
	}
	r.ledger.TakeMade(func(s *ledger.Slot) { r.ledger.Remove(s) })
	for range 3 {
		r.ledger.Reclaim(func(*ledger.Slot) bool { return true })
	}
	r.ledger.TakeDirty(func(*ledger.Slot) {})
	if r.ledger.Reclaim(func(*ledger.Slot) bool { return true }); r.ledger.Removing() != 0 {
		t.Error("the panic left the ledger pinned")
	}
}

// Case 16: nothing on the check path waits; it does not even allocate.
func TestCase16AnEstablishedCounterCostsNoAllocation(t *testing.T) {
	if raceDetector {
		t.Skip("allocations are counted without the race detector")
	}
	r := newRig(t, 100, byKey+`  limits:
  - {name: broad, rates: [{limit: 1000000, window: 1s}]}
  - {name: each, when: {paths: [{type: Template, value: "/orders/{id}"}]}, counters: [Client, Endpoint], rates: [{limit: 1000000, window: 1s}, {limit: 20000000, window: 1m}]}
`)
	req := request("a")
	var a Answer
	r.Check(req, &a)
	if n := testing.AllocsPerRun(1000, func() { r.Check(req, &a) }); n > 0 {
		t.Errorf("%v allocations a check", n)
	}
}

func TestRacingChecksExceedByAtMostTheirNumber(t *testing.T) {
	const workers = 8
	r := newRig(t, 100, each10)
	var passed atomic.Int64
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for range 500 {
				if a := r.check("a"); a.Allow() {
					passed.Add(1)
				}
			}
		})
	}
	all.Wait()
	if n := passed.Load(); n < 10 || n > 10+workers-1 {
		t.Errorf("%d passed of a limit of 10", n)
	}
}

func BenchmarkCheck(b *testing.B) {
	for _, bench := range []struct{ name, spec string }{
		{"one counter", each10},
		{"three counters", byKey + `  limits:
  - {name: broad, rates: [{limit: 1000000, window: 1s}]}
  - {name: each, counters: [Client], rates: [{limit: 1000000, window: 1s}, {limit: 20000000, window: 1m}]}
`},
	} {
		b.Run(bench.name, func(b *testing.B) {
			r := newRig(b, 1000, bench.spec)
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				req := request("a")
				var a Answer
				for pb.Next() {
					r.Check(req, &a)
				}
			})
		})
	}
}
