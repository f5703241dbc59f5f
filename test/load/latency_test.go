package load

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestBucketsCoverEveryValueOnce(t *testing.T) {
	for us := range uint64(1 << 14) {
		b := bucketOf(us)
		if us > topOf(b) || (b > 0 && us <= topOf(b-1)) {
			t.Fatalf("%d µs is in bucket %d, which ends at %d after %d", us, b, topOf(b), topOf(b-1))
		}
	}
}

func TestQuantileIsCloseFromAbove(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := rapid.SliceOfN(rapid.Int64Range(0, int64(time.Hour/time.Microsecond)), 1, 50).Draw(t, "µs")
		q := rapid.Float64Range(0.01, 1).Draw(t, "q")
		var one, two Latency
		for i, us := range all {
			half := []*Latency{&one, &two}[i%2]
			half.add(time.Duration(us) * time.Microsecond)
		}
		one.merge(&two)

		slices.Sort(all)
		rank := 1
		for float64(rank) < q*float64(len(all)) {
			rank++
		}
		exact := time.Duration(all[rank-1]) * time.Microsecond
		got := one.Quantile(q)
		if got < exact || got > exact+exact/perOctave {
			t.Fatalf("quantile %v of %v is %v, want %v", q, all, got, exact)
		}
		if one.Count() != len(all) {
			t.Fatalf("count is %d of %d", one.Count(), len(all))
		}
	})
}
