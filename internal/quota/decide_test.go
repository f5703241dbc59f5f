package quota

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A refused request charges no counter, neither the one that refused nor the others.
func TestCase02NarrowRefusalLeavesBroadUncharged(t *testing.T) {
	narrow, broad := newFixture(perSecond(10), 1), newFixture(perSecond(1000), 1)
	takes := []Take{narrow.take(1), broad.take(1)}
	out := make([]Outcome, 2)
	passed := 0
	for range 50 {
		r := Decide(t0, takes, &narrow.rnd, out)
		if r.OK {
			passed++
			continue
		}
		if r.Refused != 0 || out[0].OK || !out[1].OK {
			t.Fatalf("refused by %d, outcomes %v %v", r.Refused, out[0].OK, out[1].OK)
		}
	}
	if passed != 10 {
		t.Errorf("%d of 50 passed a limit of 10", passed)
	}
	if n, b := narrow.cell.Admitted(), broad.cell.Admitted(); n != 10 || b != 10 {
		t.Errorf("charged %d and %d, want 10 each", n, b)
	}
	// Demand is what no other rate refused: all 50 for the narrow one, 10 for the broad.
	if n, b := narrow.cell.Requests(), broad.cell.Requests(); n != 50 || b != 10 {
		t.Errorf("demand %d and %d, want 50 and 10", n, b)
	}
}

func TestRefusedByBothCountsForNeither(t *testing.T) {
	a, b := newFixture(perSecond(1), 1), newFixture(tokens(1, 1), 1)
	takes, out := []Take{a.take(1), b.take(1)}, make([]Outcome, 2)
	Decide(t0, takes, &a.rnd, out)
	if r := Decide(t0, takes, &a.rnd, out); r.OK {
		t.Fatal("passed an exhausted limit")
	}
	if a.cell.Requests() != 1 || b.cell.Requests() != 1 {
		t.Errorf("demand %d and %d, want 1 and 1", a.cell.Requests(), b.cell.Requests())
	}
}

func TestRefusedIsTheOneThatStaysLongest(t *testing.T) {
	short, long := newFixture(perSecond(1), 1), newFixture(&Rule{Algorithm: SlidingWindow, Limit: 1, Window: time.Minute}, 1)
	takes, out := []Take{short.take(1), long.take(1)}, make([]Outcome, 2)
	Decide(t0, takes, &short.rnd, out)
	if r := Decide(t0, takes, &short.rnd, out); r.Refused != 1 {
		t.Errorf("named rate %d, want the minute's", r.Refused)
	}
}

func TestShadowRefusesNothingAndIsChargedWhatItWouldAdmit(t *testing.T) {
	enforced, a, b := newFixture(perSecond(30), 1), newFixture(perSecond(10), 1), newFixture(perSecond(20), 1)
	takes, out := []Take{a.take(1), enforced.take(1), b.take(1)}, make([]Outcome, 3)
	takes[0].Enforced, takes[2].Enforced = false, false
	takes[0].Group, takes[2].Group = 7, 7 // two rates of one limit
	passed, refusing := 0, 0
	for range 50 {
		r := Decide(t0, takes, &enforced.rnd, out)
		if r.OK {
			passed++
		} else if out[0].Basis != BasisNone || out[2].Basis != BasisNone {
			t.Fatal("judged a shadow limit on a refused request")
		}
		if r.OK && (!out[0].OK || !out[2].OK) {
			refusing++
		}
	}
	if passed != 30 || refusing != 20 {
		t.Errorf("%d passed and %d would have been refused, want 30 and 20", passed, refusing)
	}
	if a.cell.Admitted() != 10 || b.cell.Admitted() != 10 {
		t.Errorf("charged %d and %d, want 10: a limit's rates are all or nothing", a.cell.Admitted(), b.cell.Admitted())
	}
	if a.cell.Requests() != 30 {
		t.Errorf("demand %d, want the 30 that the enforced limit admitted", a.cell.Requests())
	}
}

func TestShadowLimitsAreJudgedApart(t *testing.T) {
	a, b := newFixture(perSecond(1), 1), newFixture(perSecond(5), 1)
	takes, out := []Take{a.take(1), b.take(1)}, make([]Outcome, 2)
	takes[0].Enforced, takes[1].Enforced = false, false
	takes[0].Group, takes[1].Group = 0, 1
	for range 9 {
		Decide(t0, takes, &a.rnd, out)
	}
	if a.cell.Admitted() != 1 || b.cell.Admitted() != 5 {
		t.Errorf("charged %d and %d, want 1 and 5", a.cell.Admitted(), b.cell.Admitted())
	}
}

func TestPreviewChargesNothing(t *testing.T) {
	f := newFixture(perSecond(2), 1)
	f.admit(1)
	takes, out := []Take{f.take(1), f.take(1)}, make([]Outcome, 2)
	takes[1].Enforced = false
	for range 5 {
		if r := Preview(f.now, takes, &f.rnd, out); !r.OK {
			t.Fatal("a look changed the count")
		}
	}
	if f.cell.Admitted() != 1 || f.cell.Requests() != 1 {
		t.Errorf("admitted %d, requests %d after five looks", f.cell.Admitted(), f.cell.Requests())
	}
}

func TestCostIsCharged(t *testing.T) {
	f := newFixture(perSecond(100), 1)
	if o := f.check(60); !o.OK || o.Remaining != 40 {
		t.Errorf("first: %+v", o)
	}
	if o := f.check(60); o.OK || o.Remaining != 40 {
		t.Errorf("60 of the 40 left: %+v", o)
	}
	if o := f.check(40); !o.OK || o.Remaining != 0 {
		t.Errorf("the last 40: %+v", o)
	}
	if o := f.check(0); !o.OK {
		t.Error("refused a request that costs nothing")
	}
	if f.cell.Admitted() != 100 || f.cell.Requests() != 3 {
		t.Errorf("admitted %d of %d requests", f.cell.Admitted(), f.cell.Requests())
	}
}

// One dear request passes a cold counter even where 1/n of the limit is less: else it would be refused for ever, for
// what is refused never reaches the owner.
func TestColdCounterAdmitsOneDearRequest(t *testing.T) {
	f := newFixture(perSecond(100), 50)
	if !f.check(80).OK {
		t.Error("refused the only request")
	}
	if f.check(80).OK {
		t.Error("admitted a second one")
	}
}

// ALGORITHM 3.1: racing requests may exceed by at most threads - 1.
func TestRacingTakesExceedByThreadsMinusOne(t *testing.T) {
	const threads, limit, rounds = 8, 50, 40
	for range rounds {
		f := newFixture(perSecond(limit), 1)
		var passed atomic.Int64
		var wg sync.WaitGroup
		for i := range threads {
			wg.Go(func() {
				takes, out, rnd := [1]Take{f.take(1)}, [1]Outcome{}, NewRand(uint64(i))
				for range limit {
					if Decide(f.now, takes[:], &rnd, out[:]).OK {
						passed.Add(1)
					}
				}
			})
		}
		wg.Wait()
		if p := passed.Load(); p < limit || p > limit+threads-1 {
			t.Fatalf("%d passed, want %d to %d", p, limit, limit+threads-1)
		}
		if f.cell.Admitted() != uint64(passed.Load()) {
			t.Fatalf("counted %d of %d", f.cell.Admitted(), passed.Load())
		}
	}
}

// A write leaves the view in force alone: a check may still be reading it.
func TestWriteLeavesTheViewInForceWhole(t *testing.T) {
	var (
		c Cell
		f Fresh
		v view
	)
	a, b := view{r: 1, period: 1}, view{r: 2, period: 2}
	c.write(&f, &a)
	c.write(&f, &a)
	words := b.words()
	f.spares.at(f.spares.take()).store(&words) // another cell's, in the first spare
	place := c.writeSpare(&f, &words)
	if v.load(c.view()); v != a {
		t.Errorf("what a check may still be reading is overwritten by %+v", v)
	}
	c.w[wView].Store(7) // half written
	if c.read(&f, &v); v != b {
		t.Errorf("in force while the cell is written: %+v", v)
	}
	f.spares.put(place)
	c.write(&f, &a)
	if c.read(&f, &v); v != a || c.w[wVersion].Load()&placeMask != placeCell {
		t.Errorf("in force: %+v", v)
	}
	for range placeMask {
		f.spares.take()
	}
	c.write(&f, &b) // with no spare left
	if c.read(&f, &v); v != b {
		t.Errorf("in force: %+v", v)
	}
}

// The feed writes while checks read: a read that one write overlaps is whole.
func TestChecksNeverMixDecisions(t *testing.T) {
	var (
		c Cell
		f Fresh
	)
	views := [2]view{{r: 1, k1: 1, m: 1, s: 1, g: 1, period: 1}, {r: 2, k1: 2, m: 2, s: 2, g: 2, period: 2}}
	c.write(&f, &views[0])
	var reads [3]atomic.Int64
	var stop, torn atomic.Bool
	var wg sync.WaitGroup
	for i := range reads {
		wg.Go(func() {
			for !stop.Load() {
				var v view
				c.read(&f, &v)
				if v != views[(v.period-1)&1] {
					torn.Store(true)
				}
				reads[i].Add(1)
				runtime.Gosched()
			}
		})
	}
	for i := range 300 {
		c.write(&f, &views[i%2])
		for j := range reads { // each reader ends the read that this write overlapped
			for n := reads[j].Load(); reads[j].Load() < n+2; {
				runtime.Gosched()
			}
		}
	}
	stop.Store(true)
	wg.Wait()
	if torn.Load() {
		t.Error("a check acted on a mixture of two decisions")
	}
}

// ALGORITHM 7, number 12.
func TestDecideDoesNotAllocate(t *testing.T) {
	a, b := newFixture(perSecond(100), 10), newFixture(tokens(50, 100), 10)
	b.told(decision(b.Rule(), 40, 60))
	takes, out := []Take{a.take(1), b.take(2)}, make([]Outcome, 2)
	takes[1].Enforced = false
	now := a.now
	if n := testing.AllocsPerRun(1000, func() {
		Decide(now, takes, &a.rnd, out)
		now += 5 * ms
	}); n != 0 {
		t.Errorf("%v allocations a decision", n)
	}
}

func TestOwnWindowHoldsTheTrueWindow(t *testing.T) {
	f := newFixture(perSecond(1e6), 1)
	rnd := NewRand(3)
	var log []Time
	for range 3000 {
		f.wait(time.Duration(rnd.Uint64() % uint64(3*time.Millisecond)))
		if f.check(1).OK {
			log = append(log, f.now)
		}
		var v view
		f.cell.read(&f.fresh, &v)
		own := f.cell.own(f.cell.ownNumber(f.now, &v))
		truth, most := 0, 0
		for _, at := range log {
			if at > f.now-Time(time.Second) {
				truth++
			}
			if at > f.now-Time(time.Second)*16/15 {
				most++
			}
		}
		if own < uint64(truth) || own > uint64(most) {
			t.Fatalf("own window %d, true one %d, with the oldest bucket whole %d", own, truth, most)
		}
	}
}

func TestUrgentTellsOfUnexpectedDemand(t *testing.T) {
	f := newFixture(perSecond(1000), 1)
	f.admit(100)
	if f.Urgent(f.now) {
		t.Error("urgent within 10 ms of the last flush")
	}
	f.wait(10 * time.Millisecond)
	takes, out := [1]Take{f.take(1)}, [1]Outcome{}
	if !f.Urgent(f.now) || !Decide(f.now, takes[:], &f.rnd, out[:]).Urgent {
		t.Error("100 unexpected requests are not urgent")
	}
	f.reported(0)
	for range 10 { // the estimate follows; the same demand is then expected
		f.wait(flushing)
		f.admit(100)
		f.reported(0)
	}
	f.wait(flushing)
	f.admit(100)
	if f.Urgent(f.now) {
		t.Error("steady demand is urgent")
	}
}
