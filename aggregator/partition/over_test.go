package partition

import (
	"cmp"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weirproxy/weir/internal/quota"
)

func near(t testing.TB, what string, got, want, within float64) {
	t.Helper()
	if math.Abs(got-want) > within {
		t.Errorf("%s is %v, want %v ± %v", what, got, want, within)
	}
}

// Whatever order reports come in, as late as they may: each window of 60 slices is judged by all units admitted in
// it, found here by adding them up.
func TestFillJudgesEachWindowByAllThatWasAdmittedInIt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		window := rapid.SampledFrom([]time.Duration{time.Second, 7 * time.Second, time.Minute, time.Hour}).Draw(t, "window")
		slice := window / fillSlices
		const amount = 40
		f := newFill(window, amount, start)
		first := f.head + 1
		late := time.Duration(f.late) * slice
		type report struct{ admitted, came quota.Millis }
		var reports []report
		for range rapid.IntRange(1, 150).Draw(t, "units") {
			at := start + quota.Millis(rapid.Int64Range(slice.Milliseconds()+1, 2*window.Milliseconds()).Draw(t, "admitted"))
			reports = append(reports, report{at, at + quota.Millis(rapid.Int64Range(0, (late-slice).Milliseconds()).Draw(t, "late"))})
		}
		slices.SortFunc(reports, func(a, b report) int { return cmp.Compare(a.came, b.came) })
		units := map[int64]float64{}
		for _, r := range reports {
			f.add(r.admitted, r.admitted, r.came, 1, 0)
			units[f.index(r.admitted)]++
		}
		end := start + quota.Millis((4*window+late)/time.Millisecond)
		got := f.settle(end, 0)
		var want over
		for e := first; e <= f.head; e++ {
			var sum float64
			for i := e - fillSlices + 1; i <= e; i++ {
				sum += units[i]
			}
			want.fullest = max(want.fullest, sum/amount)
			if sum > amount {
				want.units += (sum - amount) / fillSlices
				want.seconds += slice.Seconds()
			}
		}
		if math.Abs(got.fullest-want.fullest) > 1e-9 || math.Abs(got.units-want.units) > 1e-6 || math.Abs(got.seconds-want.seconds) > 1e-6*window.Seconds() {
			t.Fatalf("seen %+v, want %+v", got, want)
		}
	})
}

// A report's units lie evenly in its span: half of these in the second before the window.
func TestFillSpreadsAReportOverItsSpan(t *testing.T) {
	f := newFill(time.Second, 100, start)
	f.add(start-500, start+500, start+500, 150, 0)
	got := f.settle(start+3000, 0)
	near(t, "the fullest window", got.fullest, 1.5, 1.5/fillSlices)
	if n := f.settle(start+10_000, 0); n != (over{}) {
		t.Errorf("seen again: %+v", n)
	}
	if !f.done() {
		t.Error("an empty meter is not done")
	}
}

// One burst of 130 units of 100 is 30 units over for one window, then nothing.
func TestABurstBeyondTheAmountIsCountedOnce(t *testing.T) {
	f := newFill(time.Second, 100, start)
	f.add(start+10, start+10, start+20, 130, 0)
	got := f.settle(start+5000, 0)
	near(t, "fullest", got.fullest, 1.3, 1e-9)
	near(t, "units over", got.units, 30, 1e-9)
	near(t, "seconds over", got.seconds, 1, 1e-9)
}

// A lowered amount makes nothing over that was there; what comes on top is, for as long as that is there.
func TestALoweredAmountIsNotOverByWhatWasThere(t *testing.T) {
	for _, tt := range []struct {
		name  string
		meter meter
		want  float64
	}{
		{"fill", newFill(time.Second, 100, start), 7}, // 10 units for 0.7 of a window
		{"level", &level{amount: 100, at: start}, 10},
	} {
		m := tt.meter
		m.add(start+100, start+100, start+100, 90, 90)
		m.setAmount(50, 90, start+200)
		if got := m.settle(start+300, 90); got.units != 0 || got.fullest > 1 {
			t.Errorf("%s: seen %+v of what was there", tt.name, got)
		}
		m.add(start+400, start+400, start+400, 10, 100)
		got, more := m.settle(start+1000, 100), m.settle(start+5000, 100)
		near(t, tt.name+": units over", got.units+more.units, tt.want, 10./fillSlices)
		near(t, tt.name+": fullest", max(got.fullest, more.fullest), 100./90, 1e-9)
	}
}

func TestLevelCountsWhatAnExactLimiterRefuses(t *testing.T) {
	l := &level{amount: 40, at: start}
	l.take(39.8, start+100)
	l.take(40.4, start+200) // less than half a unit: none
	if got := l.settle(start+300, 40.2); got.units != 0 || got.seconds != 0 || got.fullest != 1 {
		t.Errorf("at the amount: %+v", got)
	}
	l.take(45, start+1000)
	l.take(39, start+1500) // drained below, and filled up again: an exact bucket would hold 34, then 40
	l.take(45, start+2000)
	l.take(46, start+2500)
	got := l.settle(start+3000, 41)
	near(t, "units over", got.units, 6, 1e-9)
	near(t, "seconds over", got.seconds, 1.5, 1e-9)
	near(t, "fullest", got.fullest, 46.0/40, 1e-9)
	l.take(0, start+4000)
	l.take(42, start+5000)
	near(t, "units over, once more", l.settle(start+5000, 42).units, 2, 1e-9)
	if l.done() {
		t.Error("done although it is over")
	}
}

func TestPeakForgetsAfterAMinute(t *testing.T) {
	var k peak
	at := func(d time.Duration) quota.Time { return quota.Time(time.Hour + d) }
	k.note(1.5, at(0))
	k.note(0.7, at(30*time.Second))
	if v := k.value(at(50 * time.Second)); v != 1.5 {
		t.Errorf("within the minute: %v", v)
	}
	if v := k.value(at(65 * time.Second)); v != 0.7 {
		t.Errorf("after it: %v", v)
	}
	if v := k.value(at(time.Hour)); v != 0 {
		t.Errorf("an hour later: %v", v)
	}
}
