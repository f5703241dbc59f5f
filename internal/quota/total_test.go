package quota

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func moment(now Millis, pods int) *Moment {
	return &Moment{Now: now, Pods: pods, Flush: flushing, Tick: ticking, Uplink: DefaultUplink}
}

// tick ticks and, if told to, sends.
func tick(t *Total, now Millis, pods int) (Record, Verdict) {
	r, v := t.Tick(moment(now, pods))
	if v.Send {
		t.Sent(&r)
	}
	return r, v
}

// ALGORITHM 7, number 2: whatever is lost, repeated, late or out of order, what was admitted counts once.
func TestReplaysLeaveTheSumUnchanged(t *testing.T) {
	rules := []*Rule{
		{Algorithm: SlidingWindow, Limit: 1e6, Window: time.Hour}, daily(1e6),
	}
	rapid.Check(t, func(t *rapid.T) {
		rule := rapid.SampledFrom(rules).Draw(t, "rule")
		total := NewTotal(rule, d0)
		type state struct{ cumulative, base, made uint64 }
		pods := make([]state, 3)
		var log []Usage
		var want uint64
		at := d0
		deliver := func(u Usage) {
			at += Millis(rapid.IntRange(0, 100).Draw(t, "gap"))
			u.Appended, u.Offset = at, int64(len(log))
			log = append(log, u)
			total.Ingest(&u, true)
		}
		for range rapid.IntRange(1, 40).Draw(t, "reports") {
			i := rapid.IntRange(0, len(pods)-1).Draw(t, "pod")
			p := &pods[i]
			if p.base == p.cumulative && rapid.IntRange(0, 9).Draw(t, "evict") == 0 {
				*p = state{made: p.made + 1}
			}
			n := uint64(rapid.IntRange(0, 50).Draw(t, "units"))
			p.cumulative += n
			want += n
			u := Usage{Pod: uint64(i), Epoch: 1, Made: p.made, Cumulative: p.cumulative, Base: p.base, Demand: 1}
			if rapid.IntRange(0, 3).Draw(t, "lost") == 0 {
				continue
			}
			deliver(u)
			if rapid.Bool().Draw(t, "acknowledged") {
				p.base = p.cumulative
			}
			for rapid.IntRange(0, 3).Draw(t, "again") == 0 { // any earlier report, once more
				deliver(log[rapid.IntRange(0, len(log)-1).Draw(t, "which")])
			}
		}
		for i, p := range pods { // the last report of each gets through
			deliver(Usage{Pod: uint64(i), Epoch: 1, Made: p.made, Cumulative: p.cumulative, Base: p.base})
		}
		if total.Admitted() != want || total.Sum() != float64(want) {
			t.Fatalf("counted %d, holds %v of %d units", total.Admitted(), total.Sum(), want)
		}
		// A new owner that replays the same log from the beginning, at or below its stored offset, adds nothing.
		heir := NewTotal(rule, d0)
		heir.Restore(total.ExportAll(nil), at)
		for i := range log {
			heir.Ingest(&log[i], false)
		}
		for i := range log {
			heir.Ingest(&log[i], true)
		}
		if heir.Admitted() != want || heir.Sum() != total.Sum() {
			t.Fatalf("an heir counts %d, holds %v of %d", heir.Admitted(), heir.Sum(), want)
		}
	})
}

// ALGORITHM 7, number 3: what a run of a pod did not report is all that its end loses.
func TestNewEpochLosesOnlyTheUnreported(t *testing.T) {
	total := NewTotal(perSecond(1000), d0)
	total.Ingest(&Usage{Pod: 1, Epoch: 7, Made: 1, Cumulative: 100, Appended: d0}, true)
	// 20 more were admitted, then the pod was killed.
	total.Ingest(&Usage{Pod: 1, Epoch: 8, Made: 1, Cumulative: 30, Appended: d0 + 100}, true)
	if total.Admitted() != 130 {
		t.Errorf("counted %d", total.Admitted())
	}
	// A report of the old run that was on its way still counts, once.
	total.Ingest(&Usage{Pod: 1, Epoch: 7, Made: 1, Cumulative: 110, Base: 100, Appended: d0 + 110}, true)
	if total.Admitted() != 140 {
		t.Errorf("counted %d", total.Admitted())
	}
}

// A pod that evicted the counter and made it anew is one pod, with one demand.
func TestNewSlotSupersedesTheDemandOfTheOld(t *testing.T) {
	total := NewTotal(perSecond(1000), d0)
	total.Ingest(&Usage{Pod: 1, Epoch: 7, Made: 1, Cumulative: 10, Demand: 50, Appended: d0, Offset: 1}, true)
	total.Ingest(&Usage{Pod: 1, Epoch: 7, Made: 2, Cumulative: 10, Demand: 60, Appended: d0 + 1, Offset: 2}, true)
	r, _ := tick(total, d0+2, 2)
	near(t, "demand", r.Demand, 60, 1e-9)
	if total.Admitted() != 20 {
		t.Errorf("counted %d", total.Admitted())
	}
}

// A report that carries again what one before it brought is spread over the rest of its span alone.
func TestRepeatedSpanIsNotFilledTwice(t *testing.T) {
	total := NewTotal(perSecond(1000), d0)
	total.Ingest(&Usage{Pod: 1, Epoch: 1, Made: 1, Cumulative: 50, Span: 500 * time.Millisecond, Appended: d0 + 500}, true)
	total.Ingest(&Usage{
		Pod: 1, Epoch: 1, Made: 1, Cumulative: 140, Span: 900 * time.Millisecond, Appended: d0 + 900, Offset: 1,
	}, true)
	total.Tick(moment(d0+1510, 1))
	near(t, "content when the first half has left", total.Sum(), 90, 4)
}

func TestUnknownStateCountsFromBase(t *testing.T) {
	total := NewTotal(perSecond(1000), d0)
	n, _ := total.Ingest(&Usage{Pod: 1, Epoch: 7, Made: 3, Cumulative: 1_000_000, Base: 999_990, Appended: d0}, true)
	if n != 10 {
		t.Errorf("counted %d units of a pod that was never seen", n)
	}
}

// Case 4: units belong to the time at which they were admitted, as the log has it.
func TestCase04OldUnitsLandInTheirOwnWindow(t *testing.T) {
	total := NewTotal(perSecond(100), d0)
	total.Ingest(&Usage{Pod: 1, Epoch: 1, Made: 1, Cumulative: 90, Appended: d0, Age: 5 * time.Second, Span: time.Second}, true)
	if total.Sum() != 0 || total.Admitted() != 90 {
		t.Errorf("hits of five seconds ago: %v in the window of %d", total.Sum(), total.Admitted())
	}
	total.Ingest(&Usage{Pod: 1, Epoch: 1, Made: 1, Cumulative: 190, Base: 90, Appended: d0, Span: 2 * time.Second}, true)
	near(t, "half of a two-second span", total.Sum(), 50, 3)
}

// ALGORITHM 7, number 4: what the owner says is left never exceeds what an exact window would have left, now and at the
// curve's knots.
func TestCurveStaysBelowTheTrueWindow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := time.Duration(rapid.IntRange(1000, 20_000).Draw(t, "window, ms")) * time.Millisecond
		rule := &Rule{Algorithm: SlidingWindow, Limit: 1e4, Window: w}
		total := NewTotal(rule, d0)
		var log []Millis
		at, cumulative := d0, uint64(0)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			at += Millis(rapid.Int64Range(0, w.Milliseconds()/10).Draw(t, "gap"))
			n := rapid.IntRange(0, 40).Draw(t, "units")
			for range n {
				log = append(log, at)
			}
			cumulative += uint64(n)
			total.Ingest(&Usage{Pod: 1, Epoch: 1, Made: 1, Cumulative: cumulative, Appended: at}, true)
			r, _ := total.Tick(moment(at, 1))
			h1, h2 := knots(float64(w))
			for _, k := range []struct{ age, left float64 }{
				{0, r.Remaining}, {h1, r.Remaining + r.Expire1}, {h2, r.Remaining + r.Expire2},
			} {
				later := at + Millis(k.age/1e6)
				content := 0.0
				for _, x := range log {
					if x > later-Millis(w.Milliseconds()) {
						content++
					}
				}
				if k.left > rule.Limit-content {
					t.Fatalf("%v ms on: says %v are left, truly %v", k.age/1e6, k.left, rule.Limit-content)
				}
			}
		}
	})
}

// ... and it is not far below: the oldest sub-bucket is all that is too much.
func TestWindowForgetsWithinASubBucket(t *testing.T) {
	total := NewTotal(perSecond(100), d0)
	total.Ingest(&Usage{Pod: 1, Epoch: 1, Made: 1, Cumulative: 50, Appended: d0}, true)
	total.Tick(moment(d0+1000, 1))
	if total.Sum() != 50 {
		t.Errorf("holds %v at the end of the window", total.Sum())
	}
	total.Tick(moment(d0+1017, 1))
	if total.Sum() != 0 {
		t.Errorf("holds %v a sub-bucket later", total.Sum())
	}
}

// ALGORITHM 7, number 5: a bucket against the textbook one, told late.
func TestBucketAgreesWithAnExactOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rule := tokens(100, float64(rapid.IntRange(10, 400).Draw(t, "burst")))
		total := NewTotal(rule, d0)
		exact, cumulative, at := 0.0, uint64(0), d0
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			gap := rapid.IntRange(1, 400).Draw(t, "gap")
			n := rapid.IntRange(0, 60).Draw(t, "units")
			exact = max(exact-float64(gap)*0.1, 0) + float64(n)
			at += Millis(gap)
			cumulative += uint64(n)
			late := Millis(rapid.IntRange(0, gap-1).Draw(t, "late, ms"))
			total.Ingest(&Usage{
				Pod: 1, Epoch: 1, Made: 1, Cumulative: cumulative, Appended: at + late,
				Age: time.Duration(late) * time.Millisecond,
			}, true)
			want := max(exact-float64(late)*0.1, 0)
			if math.Abs(total.Sum()-want) > 1e-6 {
				t.Fatalf("debt %v, want %v", total.Sum(), want)
			}
			if r, _ := total.Tick(moment(at+late, 1)); math.Abs(r.Remaining-(rule.Burst-want)) > 1e-6 {
				t.Fatalf("says %v tokens, want %v", r.Remaining, rule.Burst-want)
			}
			at += late
			exact = want
		}
	})
}

// ALGORITHM 7, number 5: a fixed window ends at its reset, and what came before it stays there.
func TestCalendarCountsByPeriod(t *testing.T) {
	rule := daily(100)
	_, end := PeriodAt(Day, time.UTC, d0)
	total := NewTotal(rule, d0)
	total.Ingest(&Usage{Pod: 1, Epoch: 1, Made: 1, Cumulative: 60, Appended: end - 100}, true)
	r, _ := tick(total, end-50, 1)
	if r.Remaining != 40 || r.ResetIn != 50*time.Millisecond {
		t.Errorf("%v left, reset in %v", r.Remaining, r.ResetIn)
	}
	// One report over midnight, split by the pod; delays would have put the first half into the new day.
	first := Usage{Pod: 1, Epoch: 1, Made: 1, Cumulative: 80, Base: 60, Appended: end + 30, Age: 20 * time.Millisecond, Split: EndsAtReset}
	second := first
	second.Cumulative, second.Age, second.Split = 85, 0, StartsAtReset
	total.Ingest(&first, true)
	total.Ingest(&second, true)
	r, v := tick(total, end+40, 1)
	if r.Remaining != 95 {
		t.Errorf("%v left in the new day", r.Remaining)
	}
	if !v.Send {
		t.Error("a reset was not sent")
	}
	if total.Admitted() != 85 {
		t.Errorf("counted %d", total.Admitted())
	}
}

// ALGORITHM 7, number 1: the shares of the pods in a decision sum to one; idle pods add alpha at most. Where the active
// ones ask for less than that, shares are even, and sum to one over all pods.
func TestSharesSumToOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rule := perSecond(float64(rapid.IntRange(10, 10_000).Draw(t, "limit")))
		total := NewTotal(rule, d0)
		n := rapid.IntRange(1, 40).Draw(t, "pods")
		idle := rapid.IntRange(0, 10).Draw(t, "idle")
		fs := make([]*fixture, 0, n+idle)
		offset := int64(0)
		for i := range n + idle {
			f := newFixture(rule, n+idle)
			fs = append(fs, f)
			if i >= n {
				continue
			}
			for range rapid.IntRange(1, 3).Draw(t, "flushes") {
				f.wait(flushing)
				f.admit(rapid.IntRange(1, 50).Draw(t, "requests"))
				e, k := f.Flush(f.now, flushing, true)
				if k == 0 {
					continue
				}
				if rapid.IntRange(0, 3).Draw(t, "lost") == 0 {
					f.Lost()
					continue
				}
				total.Ingest(&Usage{
					Pod: uint64(i), Epoch: 1, Made: 1, Cumulative: e[0].Cumulative, Base: e[0].Base, Demand: e[0].Demand,
					MeanCost: e[0].MeanCost, Appended: f.date(), Offset: offset,
				}, true)
				f.Acknowledge(offset, f.date(), f.now)
				offset++
			}
		}
		at := t0 + 160*ms + Time(rapid.IntRange(0, 500).Draw(t, "later, ms"))*ms
		r, _ := total.Tick(moment(d0+Millis((at-t0)/ms), n+idle))
		sum, extra := 0.0, 0.0
		for _, f := range fs {
			f.now, f.wm = at, offset
			f.told(r)
			var v view
			f.cell.read(&f.fresh, &v)
			if v.di > 0 {
				sum += v.s
			} else {
				extra += v.s
			}
		}
		even := float64(n+idle) * r.Epsilon
		switch {
		case sum > 0 && (r.ShareSum > even*(1+1e-9) || !math.IsInf(r.Level, 1)) && math.Abs(sum-1) > 1e-9:
			t.Fatalf("active pods' shares sum to %v", sum)
		case sum > 1+1e-9, sum+extra < 1-1e-9 && math.IsInf(r.Level, 1):
			t.Fatalf("where few are active, active pods' shares sum to %v and all pods' to %v", sum, sum+extra)
		}
		alpha := epsilonPart * max(r.Rate, r.Grant) / r.ShareSum
		if sum > 0 && extra > alpha+1e-9 {
			t.Fatalf("idle pods add %v, alpha is %v of Gsum", extra, alpha)
		}
		if math.IsInf(r.Level, 1) && sum+extra > 2 {
			t.Fatalf("all pods' shares sum to %v", sum+extra)
		}
	})
}

func TestWaterLevelGivesOutTheGrant(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := rapid.SliceOfN(rapid.Float64Range(0.01, 1000), 1, 50).Draw(t, "demands")
		eps, grant := rapid.Float64Range(0, 10).Draw(t, "eps"), rapid.Float64Range(0.1, 5000).Draw(t, "grant")
		total := 0.0
		for _, x := range d {
			total += x + eps
		}
		level := waterLevel(append([]float64(nil), d...), eps, grant)
		given := 0.0
		for _, x := range d {
			given += min(x+eps, level)
		}
		if want := min(grant, total); math.Abs(given-want) > 1e-6*want {
			t.Fatalf("level %v gives %v of %v", level, given, want)
		}
	})
}

func TestLevelIsFairToTheSmall(t *testing.T) {
	if got := waterLevel([]float64{1000, 10, 20}, 0, 100); got != 70 {
		t.Errorf("level %v, want 70: the small ones get what they ask for", got)
	}
}

func TestDecayIsContinuousAndFalls(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := rapid.Float64Range(0, 1e6).Draw(t, "d")
		a := rapid.Float64Range(0, 5).Draw(t, "a")
		b := rapid.Float64Range(0, 5).Draw(t, "b")
		once, twice := decay(d, a+b), decay(decay(d, a), b)
		if math.Abs(once-twice) > 1e-6*max(once, 1e-3) {
			t.Fatalf("decay over %v: %v at once, %v in two steps", a+b, once, twice)
		}
		if once > d*(1+1e-12) {
			t.Fatalf("grew from %v to %v", d, once)
		}
	})
}

func TestUsageCheck(t *testing.T) {
	good := Usage{Cumulative: 100, Base: 50, Demand: 100, MeanCost: 1}
	if err := good.Check(1000); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*Usage){
		"nan":       func(u *Usage) { u.Demand = math.NaN() },
		"negative":  func(u *Usage) { u.Burst = -1 },
		"backwards": func(u *Usage) { u.Base = 101 },
		"too many":  func(u *Usage) { u.Cumulative = 5000 },
		"too fast":  func(u *Usage) { u.Demand = 1001 },
		"dear":      func(u *Usage) { u.MeanCost = 11 },
	} {
		u := good
		if change(&u); u.Check(1000) == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	u := good
	if u.Cumulative, u.Span = 5000, 5*time.Second; u.Check(1000) != nil {
		t.Error("refused what five seconds can hold")
	}
}

// No entry, however odd, may panic, or leave numbers that are none.
func FuzzTotal(f *testing.F) {
	f.Add(uint64(1), uint64(10), uint64(0), int64(0), int64(1e9), int64(0), uint8(1), uint8(0))
	f.Add(uint64(1), uint64(1)<<63, uint64(1), int64(-1), int64(-1), int64(1)<<60, uint8(3), uint8(2))
	f.Fuzz(func(t *testing.T, pod, cumulative, base uint64, span, age, later int64, algorithm, split uint8) {
		rules := []*Rule{perSecond(10), tokens(5, 10), daily(100)}
		rule := rules[int(algorithm)%3]
		total := NewTotal(rule, d0)
		at := d0 + Millis(uint64(later)%1e12)
		for i := range int64(3) {
			u := Usage{
				Pod: pod, Epoch: 1, Made: 1, Cumulative: cumulative, Base: base, Demand: 5, Span: time.Duration(span),
				Age: time.Duration(age), Appended: at + Millis(i*20), Offset: i, Split: Split(split % 3),
			}
			total.Ingest(&u, true)
			r, _ := total.Tick(moment(at+Millis(i*25), 3))
			for _, x := range []float64{r.Remaining, r.Expire1, r.Expire2, r.ShareSum, r.Epsilon, r.Grant} {
				if math.IsNaN(x) || math.IsInf(x, 0) {
					t.Fatalf("%+v", r)
				}
			}
		}
		if total.Sum() < 0 {
			t.Fatalf("holds %v", total.Sum())
		}
		heir := NewTotal(rule, d0)
		heir.Restore(total.ExportAll(nil), at+60)
		if math.Abs(heir.Sum()-total.Sum()) > 1e-6*total.Sum()+1 {
			t.Fatalf("an heir holds %v of %v", heir.Sum(), total.Sum())
		}
	})
}

// A counter that was idle when its partition passed on: pods may hold the earlier owner's record, which no
// header renews, so they hear of it once it is used again. One record is enough.
func TestIdleCounterOfAnEarlierOwnerIsToldOnceUsed(t *testing.T) {
	heir := NewTotal(perSecond(1000), d0)
	heir.Restore(nil, d0)
	m := Moment{Now: d0, Pods: 2, Flush: 50 * time.Millisecond, Tick: 25 * time.Millisecond}
	if _, v := heir.Tick(&m); v.Send {
		t.Error("an untouched counter is told")
	}
	sends := 0
	for i := range uint64(10) {
		m.Now += 3000
		heir.Ingest(&Usage{Pod: 1, Cumulative: i + 1, Demand: 1, Appended: m.Now, Offset: int64(i)}, true)
		r, v := heir.Tick(&m)
		if v.Send {
			if !v.Minor {
				t.Errorf("a request in 1000: %+v is not minor", r)
			}
			sends++
			heir.Sent(&r)
		}
	}
	if sends != 1 {
		t.Errorf("told %d times in 10 requests, want once", sends)
	}
}
