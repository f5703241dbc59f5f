package quota

import (
	"math"
	"testing"
	"time"
)

const (
	ms       = Time(time.Millisecond)
	t0       = Time(time.Hour)           // pod time at which tests begin
	d0       = Millis(1_795_000_000_000) // the owner time of t0
	flushing = 50 * time.Millisecond     // F
	ticking  = 25 * time.Millisecond     // T
)

func perSecond(limit float64) *Rule {
	return &Rule{Algorithm: SlidingWindow, Limit: limit, Window: time.Second, Floor: 0.5}
}

func tokens(limit, burst float64) *Rule {
	return &Rule{Algorithm: TokenBucket, Limit: limit, Window: time.Second, Burst: burst, Floor: 0.5}
}

func daily(limit float64) *Rule {
	return &Rule{Algorithm: Calendar, Limit: limit, Period: Day, Location: time.UTC, Floor: 0.5}
}

// fixture is one counter on one pod, with the clock in a test's hand.
type fixture struct {
	Counter
	cell  Cell
	fresh Fresh
	fleet Fleet
	now   Time
	rnd   Rand
	seq   uint64
	wm    int64
}

// newFixture has heard one header, of a fleet of n pods.
func newFixture(r *Rule, n int) *fixture {
	f := &fixture{now: t0, rnd: NewRand(1), wm: -1}
	f.fleet.Set(n)
	f.heard()
	f.Init(&f.cell, r, &f.fresh, &f.fleet, 1, f.now)
	return f
}

func (f *fixture) date() Millis { return d0 + Millis((f.now-t0)/ms) }

func (f *fixture) wait(d time.Duration) { f.now += Time(d) }

func (f *fixture) header() Header {
	f.seq++
	return Header{
		Epoch: 1, Sequence: f.seq, Watermark: f.wm, OwnerTime: f.date(), Received: f.now,
		Flush: flushing, Tick: ticking,
	}
}

// heard receives a header without a record.
func (f *fixture) heard() {
	f.fresh.Observe(f.header())
	if f.cellMade() {
		f.Include(f.now, &f.rnd)
	}
}

func (f *fixture) cellMade() bool { return f.Counter.cell != nil }

// told receives a header with r.
func (f *fixture) told(r Record) bool {
	h := f.header()
	f.fresh.Observe(h)
	return f.Apply(h, r, f.now, &f.rnd)
}

func (f *fixture) take(cost uint64) Take {
	return Take{Cell: &f.cell, Rule: f.Rule(), Fresh: &f.fresh, Fleet: &f.fleet, Cost: cost, Enforced: true}
}

func (f *fixture) check(cost uint64) Outcome {
	takes, out := [1]Take{f.take(cost)}, [1]Outcome{}
	Decide(f.now, takes[:], &f.rnd, out[:])
	return out[0]
}

// admit offers n requests of one unit and returns how many pass.
func (f *fixture) admit(n int) (passed int) {
	for range n {
		if f.check(1).OK {
			passed++
		}
	}
	return passed
}

// reported flushes and acknowledges at the next offset; a header may then include it.
func (f *fixture) reported(offset int64) (entries [2]Entry, n int) {
	entries, n = f.Flush(f.now, flushing, true)
	if n > 0 {
		f.Acknowledge(offset, f.date(), f.now)
	}
	return entries, n
}

// decision is a record of a counter of which left units are left, demanded by this pod alone.
func decision(r *Rule, left, demand float64) Record {
	m, lr := r.Amount(), r.RateAt(d0)
	eps := epsilonPart * lr
	return Record{
		Amount: m, Rate: lr, Remaining: left, Content: m - left, Demand: demand, MeanCost: 1,
		ShareSum: demand + eps, Epsilon: eps, Level: inf, Grant: left / 0.12,
	}
}

func near(t *testing.T, what string, got, want, within float64) {
	t.Helper()
	if got < want-within || got > want+within {
		t.Errorf("%s = %v, want %v ± %v", what, got, want, within)
	}
}

var inf = math.Inf(1)
