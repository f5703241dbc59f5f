package quota

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestDecisionSharesAreWhatPodsSpend(t *testing.T) {
	f := newFixture(perSecond(1000), 10)
	f.admit(20)
	f.wait(flushing)
	f.reported(5)
	f.wm = 5
	r := decision(f.Rule(), 500, 0)
	r.Demand, r.ShareSum, r.Epsilon = 400, 400, 0 // this pod has its part of 400 requests/s
	f.told(r)
	st := f.State(f.now)
	near(t, "unincluded", st.Unincluded, 0, 0)
	want := int(st.Share * 500)
	if got := f.admit(600); got < want || got > want+2 {
		t.Errorf("admitted %d of a share of %d", got, want)
	}
	if o := f.check(1); o.Basis != BasisDecision || o.RetryAfter <= 0 {
		t.Errorf("refusal: %+v", o)
	}
}

// What the decision does not include counts against it; what it includes does not.
func TestWatermarkDecidesWhatIsCounted(t *testing.T) {
	f := newFixture(perSecond(100), 1)
	f.admit(30)
	f.reported(1)
	f.admit(10)
	f.wm = 1
	f.told(decision(f.Rule(), 70, 100))
	near(t, "unincluded", f.State(f.now).Unincluded, 10, 0)
	near(t, "admitted more", float64(f.admit(200)), 60, 1)
}

// ALGORITHM 7, number 8: an acknowledgement that comes after the header which includes its report.
func TestLateAcknowledgementIsTakenAtOnce(t *testing.T) {
	f := newFixture(perSecond(100), 1)
	f.admit(30)
	f.Flush(f.now, flushing, true)
	f.wm = 1
	f.told(decision(f.Rule(), 70, 100))
	before := f.decision.phi
	near(t, "unincluded", f.State(f.now).Unincluded, 30, 0)
	f.Acknowledge(1, f.date(), f.now)
	near(t, "unincluded", f.State(f.now).Unincluded, 0, 0)
	if f.decision.phi != before {
		t.Error("the rounding of the decision was drawn anew")
	}
}

func TestOlderRecordsAreIgnored(t *testing.T) {
	f := newFixture(perSecond(100), 1)
	old := f.header()
	f.told(decision(f.Rule(), 10, 100))
	if f.Apply(old, decision(f.Rule(), 90, 100), f.now, &f.rnd) {
		t.Error("took an older sequence")
	}
}

// ALGORITHM 7, number 7: an owner that has been replaced is no longer heard, however new its sequence.
func TestRecordsOfAReplacedOwnerAreRefused(t *testing.T) {
	f := newFixture(perSecond(100), 1)
	f.told(decision(f.Rule(), 10, 100))
	claim := f.header()
	claim.Epoch, claim.Sequence = 2, 1
	f.fresh.Observe(claim)
	if !f.Apply(claim, decision(f.Rule(), 50, 100), f.now, &f.rnd) {
		t.Error("refused a newer owner")
	}
	stale := f.header() // epoch 1 again
	stale.Sequence += 100
	if f.Apply(stale, decision(f.Rule(), 90, 100), f.now, &f.rnd) {
		t.Error("took a record of the owner before")
	}
	near(t, "left", f.State(f.now).Left, 50, 0)
}

// ALGORITHM 9: a fresh header without a record renews the one a pod holds.
func TestHeaderRenewsRecord(t *testing.T) {
	f := newFixture(perSecond(1000), 1)
	f.admit(100)
	f.reported(1)
	f.wm = 1
	f.told(decision(f.Rule(), 900, 1000))
	f.admit(200)
	f.wait(flushing)
	f.reported(2)
	f.wait(ticking)
	f.wm = 2
	f.heard()
	st := f.State(f.now)
	near(t, "unincluded", st.Unincluded, 0, 0)
	near(t, "left", st.Left, 900-renewMargin*1000, 1e-6)
	if f.check(1).Age != flushing+ticking {
		t.Error("the age told is not the record's")
	}
}

func TestDeferredHeaderAndNewOwnerRenewNothing(t *testing.T) {
	for name, change := range map[string]func(*Header){
		"deferred":  func(h *Header) { h.Deferred = true },
		"new owner": func(h *Header) { h.Epoch, h.Sequence = 2, 1 },
	} {
		f := newFixture(perSecond(1000), 1)
		f.admit(100)
		f.reported(1)
		f.told(decision(f.Rule(), 900, 1000))
		f.wait(ticking)
		h := f.header()
		h.Watermark = 1
		change(&h)
		f.fresh.Observe(h)
		f.Include(f.now, &f.rnd)
		if st := f.State(f.now); st.Unincluded != 100 || st.Left < 900 {
			t.Errorf("%s: %+v", name, st)
		}
		if f.check(1).Basis != BasisDecision {
			t.Errorf("%s: a fresh header does not keep the record", name)
		}
	}
}

// A counter that waits long for its record must not meet it with old reports alone.
func TestPendingReportsAreBoundedAndUseful(t *testing.T) {
	f := newFixture(perSecond(1e6), 1)
	for i := range 200 {
		f.admit(10)
		f.wait(flushing)
		f.reported(int64(i))
		f.wm = int64(i) - 3
		f.heard()
		if f.pending != nil && len(f.pending.reports) > maxPending {
			t.Fatalf("%d reports kept", len(f.pending.reports))
		}
	}
	f.told(decision(f.Rule(), 1e6-2000, 1000))
	if u := f.State(f.now).Unincluded; u > 50 {
		t.Errorf("%v units counted twice: only three reports of 10 are not included", u)
	}
	for i := range 200 { // the owner is away: the watermark stands
		f.admit(10)
		f.wait(flushing)
		f.reported(int64(200 + i))
	}
	f.wm = 399
	f.heard()
	near(t, "unincluded after the outage", f.State(f.now).Unincluded, 0, 0)
}

// Case 3, and DESIGN "Versions": a changed amount moves what is left by the difference, at once.
func TestCase03ChangedAmountTakesEffectAtOnce(t *testing.T) {
	f := newFixture(perSecond(100), 1)
	f.admit(80)
	f.reported(1)
	f.wm = 1
	f.told(decision(f.Rule(), 20, 500))
	f.SetRule(perSecond(200), f.now)
	near(t, "left when raised", f.State(f.now).Left, 120, 1e-9)
	f.SetRule(perSecond(50), f.now)
	near(t, "left when lowered", f.State(f.now).Left, -30, 1e-9)
	if f.check(1).OK {
		t.Error("admitted beyond a lowered limit")
	}
	if f.cell.Admitted() != 80 {
		t.Error("the count changed")
	}
	b := newFixture(tokens(100, 50), 1)
	b.told(decision(b.Rule(), 10, 500))
	b.SetRule(tokens(100, 20), b.now)
	near(t, "tokens when lowered", b.State(b.now).Left, -20, 1e-9)
	b.SetRule(tokens(100, 80), b.now)
	near(t, "tokens when raised", b.State(b.now).Left, 40, 1e-9)
}

// Case 5: Retry-After is fixed by the window, and does not move on with each broadcast.
func TestCase05RetryAfterComesDown(t *testing.T) {
	r := &Rule{Algorithm: SlidingWindow, Limit: 100, Window: time.Minute}
	f := newFixture(r, 1)
	rec := decision(r, 0, 10)
	rec.BlockedFor = 20 * time.Second
	f.told(rec)
	last := 21 * time.Second
	for range 10 {
		o := f.check(1)
		if o.OK || o.RetryAfter >= last {
			t.Fatalf("%v, then %+v", last, o)
		}
		last = o.RetryAfter
		f.wait(time.Second)
		f.heard()
	}
	near(t, "seconds left after 9 s", last.Seconds(), 11, 0.01)
}

func TestBucketRetryAfterIsTheTimeToFill(t *testing.T) {
	f := newFixture(tokens(10, 20), 1)
	f.told(decision(f.Rule(), 1, 1))
	o := f.check(5)
	if o.OK {
		t.Fatal("5 of one token")
	}
	near(t, "wait, s", o.RetryAfter.Seconds(), 0.4, 1e-6)
	f.wait(o.RetryAfter)
	f.heard()
	f.fresh.renewed.Store(int64(t0)) // the owner is still: the decision ages
	if !f.check(5).OK {
		t.Error("refused at the time that it named")
	}
}

// ALGORITHM 7, numbers 4 and 5, pod side: the curve rises, ends at M, and reach is its inverse.
func TestCurveRisesToAmount(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := view{m: 1000, w: float64(rapid.IntRange(1, 3600).Draw(t, "window, s")) * 1e9}
		v.r = rapid.Float64Range(-500, 1000).Draw(t, "R")
		e2 := rapid.Float64Range(0, v.m-v.r).Draw(t, "E2")
		e1 := rapid.Float64Range(0, e2).Draw(t, "E1")
		h1, h2 := knots(v.w)
		v.k1, v.k2, v.k3 = e1/h1, (e2-e1)/(h2-h1), (v.m-v.r-e2)/(v.w-h2)
		last := v.curve(0, true)
		if last != v.r {
			t.Fatalf("begins at %v, not R %v", last, v.r)
		}
		for i := range 200 {
			age := v.w * float64(i+1) / 180
			x := v.curve(age, true)
			if x < last-1e-6 || x > v.m+1e-6 {
				t.Fatalf("%v after %v at %v", x, last, age)
			}
			last = x
		}
		if last < v.m-1e-6 {
			t.Fatalf("ends at %v", last)
		}
		x := rapid.Float64Range(v.r, v.m).Draw(t, "x")
		if got := v.curve(v.reach(x), true); got < x-1e-3 {
			t.Fatalf("reach(%v) = %v, where the curve is %v", x, v.reach(x), got)
		}
	})
}

func TestBatchesAreLearned(t *testing.T) {
	f := newFixture(perSecond(1000), 100)
	rec := decision(f.Rule(), 500, 500)
	rec.ShareSum, rec.Epsilon = 500, 1 // a small part for this pod
	f.told(rec)
	refused := 20 - f.admit(20)
	if refused < 5 {
		t.Fatalf("only %d of a first batch refused: nothing to learn", refused)
	}
	for range 12 { // half a second later nothing bad has come of it
		f.wait(flushing)
		f.reported(int64(f.seq))
		f.wm = int64(f.seq)
		f.told(rec)
	}
	if got := f.admit(20); got != 20 {
		t.Errorf("%d of the second batch pass", got)
	}
	if e, _ := f.reported(99); e[0].Burst < float64(refused)-2 {
		t.Errorf("reports a burst of %v", e[0].Burst)
	}
}

func TestBurstsThatFilledTheWindowAreNotLearned(t *testing.T) {
	f := newFixture(perSecond(1000), 100)
	rec := decision(f.Rule(), 500, 500)
	rec.ShareSum, rec.Epsilon = 500, 1
	f.told(rec)
	f.admit(50)
	rec.Remaining = 10 // it was a flash crowd
	for range 12 {
		f.wait(flushing)
		f.told(rec)
	}
	if f.learned != nil {
		t.Errorf("learned %v", f.learned)
	}
}

func TestStrictNeverRoundsUp(t *testing.T) {
	r := perSecond(100)
	r.Strict = true
	if !r.StrictUnavailable(26) || r.StrictUnavailable(25) {
		t.Error("strict needs 4 units a pod")
	}
	f := newFixture(r, 10)
	if got := f.admit(50); got != 10 {
		t.Errorf("cold: %d, want M/n", got)
	}
	rec := decision(r, 50, 100)
	rec.ShareSum, rec.Epsilon = 100, 9.99
	f.reported(1)
	f.wm = 1
	f.told(rec)
	share := f.State(f.now).Share * 50
	if got := f.admit(100); got != int(share) {
		t.Errorf("admitted %d of %v", got, share)
	}
}
