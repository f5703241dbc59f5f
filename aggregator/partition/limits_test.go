package partition

import (
	"fmt"
	"testing"
	"time"

	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/internal/policy"
	"github.com/weirproxy/weir/internal/quota"
)

// run has a pod admit n units each 10 ms for a while, reported each 50 ms.
func (w *world) run(p *podSim, identity []byte, n uint64, d time.Duration) {
	p.demand = float32(100 * n)
	for i := range int(d / (10 * time.Millisecond)) {
		p.admit(identity, n)
		if i%5 == 4 {
			p.deliver()
		}
		w.step(10 * time.Millisecond)
	}
}

func (w *world) seen(t *testing.T) Seen {
	t.Helper()
	all := w.own.Limits(w.now)
	if len(all) != 1 {
		t.Fatalf("%d limits are seen, want one: %+v", len(all), all)
	}
	return all[0]
}

func bucket(limit, burst float64) *quota.Rule {
	return &quota.Rule{Algorithm: quota.TokenBucket, Limit: limit, Window: time.Second, Burst: burst}
}

// 1100 units a second of 1000, from five pods: a tenth too much, although the owner at no moment knows of all units
// that a window holds, since those admitted last have not been reported.
func TestOverAdmissionIsSeenAsItTurnsOut(t *testing.T) {
	w := liveWorld(t)
	identity := identityOf("a", time.Second)
	pods := make([]*podSim, 5)
	for i := range pods {
		pods[i] = w.pod(fmt.Sprint("shop/", i), uint64(i))
		pods[i].demand = 220
	}
	known := 0.0
	for i := range 400 {
		for _, p := range pods {
			p.admit(identity, 2)
		}
		pods[0].admit(identity, 1)
		pods[i%5].deliver()
		w.advance(10 * time.Millisecond)
		if i >= 4 { // the owner is 40 ms behind
			w.read(1)
			w.load()
		}
		w.tick()
		if c := w.own.counters[w.keys.ID(identity)]; c != nil && c.phase == live {
			known = max(known, c.total.Sum()/1000)
		}
	}
	if known > 1.07 {
		t.Errorf("the owner knew of %v: the test has lost its point", known)
	}
	w.run(pods[0], identity, 3, 3*time.Second)
	got := w.seen(t)
	near(t, "the fullest window", got.Fullest, 1.1, 0.01)
	near(t, "units over", got.OverUnits, 320, 20) // 100 a second for 3.1 s, and the ends
	near(t, "seconds over", got.OverSeconds, 3.2, 0.2)
	if got.Policy != testPolicy || got.Limit != "each-client" {
		t.Errorf("seen of %s/%s", got.Policy, got.Limit)
	}
	w.run(pods[0], identity, 3, 2*time.Second)
	if after := w.seen(t); after.OverUnits != got.OverUnits || after.OverSeconds != got.OverSeconds {
		t.Errorf("at a third of the limit it is over: %+v, %+v before", after, got)
	}
	if len(w.own.metered) != 0 {
		t.Error("a counter at a third of its limit keeps its meter")
	}
	w.advance(time.Minute)
	if after := w.seen(t); after.Fullest != 0 {
		t.Errorf("a minute later the fullest is %v", after.Fullest)
	}
}

func TestAtItsLimitNothingIsOver(t *testing.T) {
	w := liveWorld(t)
	w.run(w.pod("shop/x", 1), identityOf("a", time.Second), 10, 4*time.Second)
	if got := w.seen(t); got.OverUnits != 0 || got.Fullest < 0.98 || got.Fullest > 1 {
		t.Errorf("at its limit: %+v", got)
	}
}

// A bucket of 100 that is filled at 1000/s and asked for 1100/s is over by 100 units more each second.
func TestABucketsDebtBeyondItsBurstIsOver(t *testing.T) {
	w := newWorld(t)
	w.set = policy.NewSet([]*policy.Policy{policyOf(1, bucket(1000, 100))})
	w.claim()
	w.read(1)
	id := bucketIdentity("a")
	p := w.pod("shop/x", 1)
	w.run(p, id, 11, 3*time.Second)
	w.run(p, id, 0, 2*time.Second)
	got := w.seen(t)
	near(t, "units over", got.OverUnits, 200, 30)
	near(t, "fullest", got.Fullest, 3, 0.3)
	near(t, "seconds over", got.OverSeconds, 2, 0.3)
}

func bucketIdentity(client string) []byte {
	id := wirev1.Identity{Target: testTarget, Policy: testPolicy, Limit: "each-client", Algorithm: wirev1.TokenBucket, WindowMillis: 1000,
		Dimensions: []wirev1.Dimension{{Kind: wirev1.DimClientPrincipal, Value: client}}}
	return id.Append(nil)
}

// Raised, lowered, gone: what was admitted under the old amount is not over the new one, and a limit that no policy has
// is seen no more.
func TestChangesOfPolicyMakeNothingOver(t *testing.T) {
	w := liveWorld(t)
	p := w.pod("shop/x", 1)
	identity := identityOf("a", time.Second)
	w.run(p, identity, 6, 2*time.Second)
	lower := policyOf(2, sliding(300, time.Second))
	lower.Limits[0].Rates[0].Title = "300/1s"
	w.own.SetPolicies(policy.NewSet([]*policy.Policy{lower}), w.now)
	w.run(p, identity, 2, 3*time.Second)
	got := w.seen(t)
	if got.Rate != "300/1s" || got.OverUnits > 300 || got.Fullest > 1.7 {
		t.Errorf("after the limit was lowered: %+v", got)
	}
	w.own.SetPolicies(nil, w.now)
	w.run(p, identity, 2, 2*time.Second)
	if left := w.own.Limits(w.now); len(left) != 0 || len(w.own.metered) != 0 {
		t.Errorf("no policy, and yet seen: %+v, %d metered", left, len(w.own.metered))
	}
}

// What an earlier owner let a counter hold is not counted as over once more.
func TestATakeoverCountsNothingOverTwice(t *testing.T) {
	w := newWorld(t)
	w.set = policy.NewSet([]*policy.Policy{policyOf(1, sliding(1000, time.Hour))})
	w.claim()
	w.read(1)
	p, identity := w.pod("shop/x", 1), identityOf("a", time.Hour)
	w.run(p, identity, 11, time.Second)
	w.settle()
	w.claim()
	w.settle()
	w.run(p, identity, 0, 3*time.Minute)
	if got := w.seen(t); got.OverUnits > 100./30 || got.Fullest > 1.1 {
		t.Errorf("after a takeover: %+v", got)
	}
}

func TestMetersAreBounded(t *testing.T) {
	w := newWorld(t)
	w.set = policy.NewSet([]*policy.Policy{policyOf(1, sliding(10, time.Hour))})
	w.claim()
	w.read(1)
	p := w.pod("shop/x", 1)
	for i := range meterMost + 10 {
		p.admit(identityOf(fmt.Sprint(i), time.Hour), 9)
	}
	p.deliver()
	for range 20 {
		w.step(100 * time.Millisecond)
	}
	if n := len(w.own.metered); n != meterMost {
		t.Errorf("%d meters, want %d", n, meterMost)
	}
	if got := w.seen(t); got.Fullest != 0.9 {
		t.Errorf("fullest %v, want 0.9: those without a meter are seen too", got.Fullest)
	}
}

// How long the oldest report waited, owner time, until a header included it; one that renews nothing includes nothing.
func TestInclusionIsMeasuredByTheOldestReportOfAHeader(t *testing.T) {
	w := liveWorld(t)
	p := w.pod("shop/x", 1)
	w.step(time.Second)
	for range 3 {
		p.admit(identityOf("a", time.Second), 1)
		p.deliver()
		w.advance(20 * time.Millisecond)
		w.read(len(w.log))
	}
	w.advance(40 * time.Millisecond)
	if b := w.tick(); !b.GetHeader().GetDeferred() {
		t.Fatalf("the counter is not loaded, and the header is %v", b.GetHeader())
	}
	if got := w.own.Stats().Included; got != (Lags{}) {
		t.Errorf("included without being loaded: %+v", got)
	}
	w.load()
	w.step(100 * time.Millisecond)
	w.step(time.Second)
	got := w.own.Stats().Included
	if got.Sum != 200*time.Millisecond {
		t.Errorf("waited %v, want 200 ms", got.Sum)
	}
	for i, bound := range LagBounds() {
		want := uint64(0)
		if bound == 250*time.Millisecond {
			want = 1
		}
		if n := got.Counts[i]; n != want {
			t.Errorf("up to %v: %d headers, want %d", bound, n, want)
		}
	}
}
