package quota

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// A store that takes only what changed, at times misses a write, and hands the state to an heir: the heir must hold
// what the owner holds.
func TestStoredStateFollows(t *testing.T) {
	rules := []*Rule{
		perSecond(1000), tokens(100, 500), daily(1000), {Algorithm: SlidingWindow, Limit: 1000, Window: 7 * time.Minute},
	}
	rapid.Check(t, func(t *rapid.T) {
		rule := rapid.SampledFrom(rules).Draw(t, "rule")
		l := loader{total: NewTotal(rule, d0)}
		store := map[uint16]uint64{}
		at, lost := d0, false
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			at += Millis(rapid.IntRange(0, 500_000).Draw(t, "gap")) / Millis(rapid.SampledFrom([]int{1, 100, 10_000}).Draw(t, "scale"))
			l.add(at, uint64(rapid.IntRange(0, 100).Draw(t, "units")), 1)
			var fields []Field
			if lost {
				fields = l.total.ExportAll(nil)
			} else {
				fields = l.total.Export(nil)
			}
			if len(fields) > MaxFields {
				t.Fatalf("%d fields", len(fields))
			}
			if lost = rapid.IntRange(0, 4).Draw(t, "lost") == 0; lost {
				continue
			}
			for _, f := range fields {
				store[f.Index] = f.Value
			}
		}
		if lost {
			return
		}
		var fields []Field
		for i, v := range store {
			fields = append(fields, Field{i, v})
		}
		at += Millis(rapid.IntRange(0, 2000).Draw(t, "gap of the takeover"))
		heir := NewTotal(rule, at)
		heir.Restore(fields, at)
		l.total.advance(at)
		if math.Abs(heir.Sum()-l.total.Sum()) > 1e-6 || heir.Admitted() != l.total.Admitted() {
			t.Fatalf("owner holds %v of %d, heir %v of %d", l.total.Sum(), l.total.Admitted(), heir.Sum(), heir.Admitted())
		}
	})
}

// Whatever a spoiled store holds, a counter that starts from it goes on.
func TestSpoiledStateIsNoTrouble(t *testing.T) {
	rules := []*Rule{perSecond(1000), tokens(100, 500), daily(1000), {Algorithm: SlidingWindow, Limit: 1000, Window: 7 * time.Minute}}
	rapid.Check(t, func(t *rapid.T) {
		total := NewTotal(rapid.SampledFrom(rules).Draw(t, "rule"), d0)
		value := rapid.OneOf(rapid.Uint64(), rapid.SampledFrom([]uint64{
			math.MaxUint64, math.MaxInt64, 1 << 63, bits(math.NaN()), bits(math.Inf(1)), bits(-1), uint64(lastMillis) + 1,
		}))
		var fields []Field
		for range rapid.IntRange(1, 6).Draw(t, "fields") {
			fields = append(fields, Field{uint16(rapid.IntRange(0, 80).Draw(t, "index")), value.Draw(t, "value")})
		}
		total.Restore(fields, d0)
		total.Tick(&Moment{Now: d0 + 1000, Pods: 3, Flush: 50 * time.Millisecond, Tick: 25 * time.Millisecond})
		total.Ingest(&Usage{Pod: 1, Cumulative: 5, Appended: d0 + 2000}, true)
		if r, _ := total.Tick(&Moment{Now: d0 + 3000, Pods: 3, Flush: 50 * time.Millisecond, Tick: 25 * time.Millisecond}); math.IsNaN(r.Remaining) {
			t.Fatalf("%+v", r)
		}
		total.ExportAll(nil)
	})
}

func TestExportIsSilentWithoutChange(t *testing.T) {
	for _, rule := range []*Rule{perSecond(10), daily(10)} {
		l := loader{total: NewTotal(rule, d0)}
		l.add(d0, 5, 1)
		if len(l.total.Export(nil)) == 0 {
			t.Error("a change was not exported")
		}
		if f := l.total.Export(nil); len(f) != 0 {
			t.Errorf("exported %v without a change", f)
		}
	}
}

func TestChangedAmountKeepsStoredCounts(t *testing.T) {
	l := loader{total: NewTotal(tokens(10, 100), d0)}
	l.add(d0, 60, 1)
	heir := NewTotal(tokens(10, 200), d0)
	heir.Restore(l.total.ExportAll(nil), d0)
	if heir.Left() != 140 {
		t.Errorf("%v tokens left after a rise by 100", heir.Left())
	}
}
