package quota

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestFailureModes(t *testing.T) {
	for mode, want := range map[FailureMode]struct {
		basis Basis
		ok    bool
	}{
		FailAllow: {BasisFailureMode, true}, FailDeny: {BasisFailureMode, false}, FailLocalShare: {BasisFallback, true},
	} {
		r := perSecond(100)
		r.Failure, r.StaleAfter = mode, 200*time.Millisecond
		f := newFixture(r, 1)
		f.wait(200 * time.Millisecond)
		if o := f.check(1); o.Basis != BasisCold {
			t.Errorf("mode %d: %v at staleAfter itself", mode, o.Basis)
		}
		f.wait(time.Millisecond)
		o := f.check(1)
		if o.Basis != want.basis || o.OK != want.ok {
			t.Errorf("mode %d: %v, ok %v", mode, o.Basis, o.OK)
		}
		if !o.OK && o.RetryAfter <= 0 {
			t.Errorf("mode %d: no Retry-After", mode)
		}
		f.heard()
		if o := f.check(1); o.Basis != BasisCold || !o.OK {
			t.Errorf("mode %d: %+v after the return", mode, o)
		}
	}
}

func TestNeverHeardIsTheLocalShareOfOnePod(t *testing.T) {
	f := &fixture{now: t0, rnd: NewRand(1)}
	f.Init(&f.cell, perSecond(40), &f.fresh, &f.fleet, 1, f.now)
	if got := f.admit(100); got != 40 {
		t.Errorf("admitted %d of a limit of 40", got)
	}
	if f.check(1).Basis != BasisFallback {
		t.Error("not told as a fallback")
	}
	f.wait(1100 * time.Millisecond)
	if got := f.admit(100); got != 40 {
		t.Errorf("admitted %d in the next window", got)
	}
}

// outage plays an outage of d on n pods that hold the decision r, each offered rate requests/s, and returns
// what they admitted.
func outage(rule *Rule, n int, r *Record, rate float64, d time.Duration, seed uint64) (perMs []int) {
	fs := make([]*fixture, n)
	for i := range fs {
		fs[i] = newFixture(rule, n)
		fs[i].rnd = NewRand(seed + uint64(i))
		if r != nil {
			fs[i].told(*r)
		}
		fs[i].wait(rule.staleAfter() + time.Millisecond)
	}
	rnd := NewRand(seed)
	perMs = make([]int, d/time.Millisecond)
	for at := range perMs {
		for _, f := range fs {
			for x := rate / 1000; x > 0; x-- {
				if rnd.Float64() < x && f.check(1).OK {
					perMs[at]++
				}
			}
			f.wait(time.Millisecond)
		}
	}
	return perMs
}

func fullest(perMs []int, window int) (worst int) {
	content := 0
	for i, x := range perMs {
		content += x
		if i >= window {
			content -= perMs[i-window]
		}
		worst = max(worst, content)
	}
	return worst
}

// A pod that is asked less than once a window keeps a window's credit at most, so a sparse fleet admits
// less than its limit in an outage.
//
// ALGORITHM 3.4: the sum over pods stays at the limit a window, with and without a record, and even
// where a pod's share is less than a request.
func TestOutageKeepsTheLimit(t *testing.T) {
	for _, c := range []struct {
		name         string
		limit        float64
		pods         int
		record       bool
		times        float64 // offered, of the limit
		slack, least float64
	}{
		{"ten pods with a record", 1000, 10, true, 3, 1.03, 0.9},
		{"ten pods without", 1000, 10, false, 3, 1.07, 0.85},
		{"a hundred pods share ten, with a record", 10, 100, true, 3, 1.9, 0.2},
		{"a hundred pods share ten, without", 10, 100, false, 3, 2.2, 0.2},
		{"the same asked much, with a record", 10, 100, true, 300, 2.2, 0.8},
		{"the same asked much, without", 10, 100, false, 300, 2.2, 0.8},
	} {
		rule := perSecond(c.limit)
		var r *Record
		if c.record {
			d := decision(rule, 0, 3*c.limit)
			d.Expire1, d.Expire2 = 0.06*c.limit, 0.3*c.limit
			d.ShareSum, d.Epsilon = c.limit, c.limit/float64(c.pods) // each an equal part
			r = &d
		}
		perMs := outage(rule, c.pods, r, c.times*c.limit/float64(c.pods), 6*time.Second, 5)
		total := 0
		for _, x := range perMs {
			total += x
		}
		if worst := float64(fullest(perMs, 1000)); worst > c.slack*c.limit {
			t.Errorf("%s: fullest window %v of %v", c.name, worst, c.limit)
		}
		if mean := float64(total) / 6; mean < c.least*c.limit || mean > 1.35*c.limit { // chance, of sixty requests
			t.Errorf("%s: %v a second of %v", c.name, mean, c.limit)
		}
	}
}

// What regrew unused is lost beyond a window's share.
func TestOutageCreditIsCapped(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rule := perSecond(float64(rapid.IntRange(10, 1000).Draw(t, "limit")))
		f := newFixture(rule, 4)
		r := decision(rule, rapid.Float64Range(0, rule.Limit).Draw(t, "left"), 100)
		r.ShareSum, r.Epsilon = 4, 1
		f.told(r)
		f.wait(time.Duration(rapid.IntRange(501, 100_000).Draw(t, "quiet, ms")) * time.Millisecond)
		got := f.admit(2000)
		if most := math.Ceil(rule.Limit/4) + 1; float64(got) > most {
			t.Fatalf("%d at once of a share of %v", got, rule.Limit/4)
		}
	})
}

// Sparse pods that were quiet for long must not all let one through.
func TestOutageQuietSparsePodsKeepTheLimit(t *testing.T) {
	rule := perSecond(10)
	passed := 0
	for i := range 400 {
		f := newFixture(rule, 400)
		f.rnd = NewRand(uint64(i))
		r := decision(rule, 10, 1)
		r.ShareSum, r.Epsilon = 400, 1
		f.told(r)
		f.wait(time.Minute)
		passed += f.admit(1)
	}
	if passed > 20 {
		t.Errorf("%d at once of a limit of 10", passed)
	}
}

func TestOutageEndsCleanly(t *testing.T) {
	rule := perSecond(100)
	f := newFixture(rule, 1)
	f.told(decision(rule, 100, 100))
	f.wait(20 * time.Second)
	f.admit(300)
	f.reported(1)
	f.wm = 1
	f.told(decision(rule, 50, 100))
	near(t, "admitted", float64(f.admit(100)), 50, 1)
	f.Flush(f.now, flushing, true)
	if w := f.cell.w[wForfeit].Load(); w != 0 {
		t.Errorf("%v forfeited under a fresh header", floatOf(w))
	}
}
