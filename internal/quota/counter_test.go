package quota

import (
	"testing"
	"time"
)

// Only refusals happened, and their report was lost: the demand must still reach the owner.
func TestLostReportOfRefusalsIsSentAgain(t *testing.T) {
	f := newFixture(perSecond(1), 1)
	f.admit(1)
	f.reported(1)
	f.admit(20)
	f.wait(flushing)
	if _, n := f.Flush(f.now, flushing, false); n != 1 {
		t.Fatal("refusals were not reported")
	}
	if _, n := f.Flush(f.now, flushing, true); n != 0 {
		t.Error("a second report while the first is on its way")
	}
	f.Lost()
	if !f.Dirty() || f.Settled() {
		t.Error("a lost report is forgotten")
	}
	f.wait(flushing)
	e, n := f.Flush(f.now, flushing, false)
	if n != 1 || e[0].Cumulative != 1 || e[0].Base != 1 || e[0].Demand < 1 {
		t.Errorf("%d entries, %+v", n, e[0])
	}
}

func TestLostReportIsCarriedByTheNext(t *testing.T) {
	f := newFixture(perSecond(100), 1)
	f.admit(10)
	f.wait(20 * time.Millisecond)
	f.Flush(f.now, flushing, false)
	f.Lost()
	f.wait(flushing)
	f.admit(5)
	f.wait(10 * time.Millisecond)
	e, _ := f.Flush(f.now, flushing, false)
	if e[0].Cumulative != 15 || e[0].Base != 0 || e[0].Age != 10*time.Millisecond || e[0].Span != 70*time.Millisecond {
		t.Errorf("%+v", e[0])
	}
	f.Acknowledge(1, f.date(), f.now)
	if f.Dirty() {
		t.Error("dirty when all is acknowledged")
	}
	f.admit(1)
	e, _ = f.Flush(f.now, flushing, false)
	if e[0].Base != 15 || e[0].Span != 0 {
		t.Errorf("after it: %+v", e[0])
	}
}

// With much left and little to say a counter is silent, for a second at most.
func TestAdaptiveSkip(t *testing.T) {
	f := newFixture(perSecond(10_000), 1)
	for i := range int64(20) { // the owner knows the demand
		f.admit(10)
		f.wait(flushing)
		f.reported(i)
	}
	f.wm = 19
	f.told(decision(f.Rule(), 9000, 200))
	silent := time.Duration(0)
	for {
		f.admit(10)
		f.wait(flushing)
		f.heard()
		if _, n := f.Flush(f.now, flushing, false); n > 0 {
			break
		}
		silent += flushing
	}
	if silent < 800*time.Millisecond || silent >= skipLong {
		t.Errorf("silent for %v", silent)
	}
	f.Acknowledge(20, f.date(), f.now)
	f.wait(flushing)
	if !f.check(1500).OK { // more than an eighth of the share, in one request
		t.Fatal("refused")
	}
	if _, n := f.Flush(f.now, flushing, false); n == 0 {
		t.Error("silent about a jump")
	}
	f.Acknowledge(21, f.date(), f.now)
	f.told(decision(f.Rule(), 100, 9000))
	f.admit(1)
	f.wait(flushing)
	if _, n := f.Flush(f.now, flushing, false); n == 0 {
		t.Error("silent near the limit")
	}
}

// The owner defers for long: when the record comes, the newest report that it includes must still be known.
func TestLongDeferralKeepsAUsefulReport(t *testing.T) {
	f := newFixture(perSecond(1e6), 1)
	f.told(decision(f.Rule(), 1e6, 1000))
	for i := range int64(100) {
		f.admit(10)
		f.wait(flushing)
		f.reported(i)
		f.wm = i - 3
		h := f.header()
		h.Deferred = true
		f.fresh.Observe(h)
		f.Include(f.now, &f.rnd)
	}
	f.told(decision(f.Rule(), 1e6-970, 1000))
	near(t, "unincluded", f.State(f.now).Unincluded, 30, 0)
}

// The owner lags by more reports than are kept: what is included must move on all the same.
func TestSlowOwnerDoesNotStarveACounter(t *testing.T) {
	f := newFixture(perSecond(1e6), 1)
	f.told(decision(f.Rule(), 1e6, 1000))
	for i := range int64(200) {
		f.admit(10)
		f.wait(flushing)
		f.reported(i)
		f.wm = max(i-2*maxPending, -1)
		f.heard()
	}
	if u := f.State(f.now).Unincluded; u < 20*maxPending || u > 35*maxPending {
		t.Errorf("%v units are not included, at a lag of %d", u, 20*maxPending)
	}
}

func TestEvictable(t *testing.T) {
	f := newFixture(perSecond(10), 1)
	f.wait(999 * time.Millisecond)
	if f.Evictable(f.now) {
		t.Error("younger than its window")
	}
	f.wait(time.Millisecond)
	if !f.Evictable(f.now) {
		t.Error("never evictable")
	}
	f.admit(1)
	if f.Evictable(f.now) {
		t.Error("dirty")
	}
	f.reported(1)
	if !f.Evictable(f.now) {
		t.Error("acknowledged, and kept")
	}
	r := decision(f.Rule(), 0, 100)
	r.BlockedFor = time.Second
	f.told(r)
	if f.Evictable(f.now) || !f.Blocked(f.now) {
		t.Error("blocked, and let go")
	}
	long := newFixture(&Rule{Algorithm: SlidingWindow, Limit: 10, Window: time.Hour}, 1)
	long.wait(time.Minute)
	if !long.Evictable(long.now) {
		t.Error("a minute is old enough")
	}
}

func TestNewLogIDForgetsOffsetsAndKeepsCounts(t *testing.T) {
	f := newFixture(perSecond(100), 1)
	f.admit(30)
	f.reported(500)
	f.wm = 500
	f.told(decision(f.Rule(), 70, 10))
	f.admit(5)
	f.Flush(f.now, flushing, true)
	f.fresh.Reset()
	f.DropLog(f.now)
	f.wm = 3
	f.heard()
	if f.check(0).Basis != BasisCold {
		t.Error("holds a record of the log that is gone")
	}
	e, n := f.reported(4)
	if n != 1 || e[0].Cumulative != 35 || e[0].Base != 30 {
		t.Errorf("%+v", e[0])
	}
	f.wm = 4
	f.told(decision(f.Rule(), 65, 10))
	near(t, "unincluded", f.State(f.now).Unincluded, 0, 0)
}

// Only monotonic and owner time matter (ALGORITHM 7, number 14; case 7): the same run under other civil times
// decides the same.
func TestCase07CivilTimeDoesNotMatter(t *testing.T) {
	run := func(shift Millis) (passed []bool) {
		f := newFixture(perSecond(50), 4)
		for i := range int64(100) {
			for range 5 {
				passed = append(passed, f.check(1).OK)
				f.wait(4 * time.Millisecond)
			}
			e, n := f.Flush(f.now, flushing, true)
			if n > 0 && e[0].Age >= 0 {
				f.Acknowledge(i, f.date()+shift, f.now)
			}
			f.wm = i
			h := f.header()
			h.OwnerTime += shift
			f.fresh.Observe(h)
			f.Apply(h, decision(f.Rule(), 20, 250), f.now, &f.rnd)
		}
		return passed
	}
	a, b := run(0), run(-400*24*3600*1000)
	for i := range a {
		if a[i] != b[i] {
			t.Fatalf("request %d fared differently a year earlier", i)
		}
	}
}
