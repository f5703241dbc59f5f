package quota

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Looking ahead agrees with moving on, to the sub-bucket that leaves in between, and moves nothing.
func TestSumAtSeesWhatMovingOnLeaves(t *testing.T) {
	rules := []*Rule{perSecond(1000), {Algorithm: SlidingWindow, Limit: 1e6, Window: time.Hour}, tokens(100, 500), daily(1e6)}
	rapid.Check(t, func(t *rapid.T) {
		rule := rapid.SampledFrom(rules).Draw(t, "rule")
		gaps := rapid.SliceOfN(rapid.IntRange(0, 200), 1, 20).Draw(t, "gaps")
		later := Millis(rapid.IntRange(0, 3_600_000).Draw(t, "later"))
		at := d0
		fed := func() *Total {
			total := NewTotal(rule, d0)
			at = d0
			for i, gap := range gaps {
				at += Millis(gap)
				total.Ingest(&Usage{Pod: 1, Epoch: 1, Made: 1, Cumulative: uint64(i+1) * 7, Appended: at, Offset: int64(i)}, true)
			}
			return total
		}
		total, moved, less := fed(), fed(), fed()
		before := total.Sum()
		ahead := total.SumAt(at + later)
		if total.Sum() != before || total.SumAt(at) != before {
			t.Fatalf("holds %v and %v, %v before", total.Sum(), total.SumAt(at), before)
		}
		moved.Tick(moment(at+later, 1))
		less.Tick(moment(max(at+later-1-Millis(rule.WindowAt(d0)/subBuckets/time.Millisecond), at), 1))
		if ahead < moved.Sum()-1e-9 || ahead > less.Sum()+1e-9 {
			t.Fatalf("%v ahead, %v once there, %v a sub-bucket before", ahead, moved.Sum(), less.Sum())
		}
	})
}

func TestSumAtBeginsAnewAtAReset(t *testing.T) {
	total := NewTotal(daily(100), d0)
	total.Ingest(&Usage{Pod: 1, Epoch: 1, Made: 1, Cumulative: 60, Appended: d0}, true)
	day := Millis(24 * time.Hour / time.Millisecond)
	if today, tomorrow := total.SumAt(d0), total.SumAt(d0+day); today != 60 || tomorrow != 0 {
		t.Errorf("holds %v today and %v tomorrow, want 60 and 0", today, tomorrow)
	}
}

// What a window holds is found again by the times that its slices are said to begin at.
func TestSlicesAreAllThatAWindowHolds(t *testing.T) {
	total := NewTotal(perSecond(1000), d0)
	for i, n := range []uint64{5, 7, 11} {
		total.Ingest(&Usage{Pod: uint64(i), Epoch: 1, Made: 1, Cumulative: n, Appended: d0 + Millis(300*i)}, true)
	}
	again, sum, last := NewTotal(perSecond(1000), d0), uint64(0), Millis(0)
	total.Slices(func(at Millis, n uint64) {
		if at <= last {
			t.Errorf("a slice at %d after one at %d", at, last)
		}
		last, sum = at, sum+n
		again.Ingest(&Usage{Pod: 1, Epoch: 1, Made: 1, Cumulative: sum, Appended: at}, true)
	})
	if sum != 23 || last < d0+580 || last > d0+600 {
		t.Errorf("%d units, the newest at %d", sum, last-d0)
	}
	for _, later := range []Millis{800, 1010, 1030, 1300, 1500, 1700} {
		if a, b := total.SumAt(d0+later), again.SumAt(d0+later); a != b {
			t.Errorf("%d ms later the slices hold %v, the window %v", later, b, a)
		}
	}
	NewTotal(daily(1), d0).Slices(func(Millis, uint64) { t.Error("a calendar has a slice") })
}
