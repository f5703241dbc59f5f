package leases

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

func TestSplitGivesOutAllAndNoMore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		units := rapid.IntRange(-1, 1_000_000).Draw(t, "units")
		weights := rapid.SliceOfN(rapid.Float64Range(0, 1e6), 0, 50).Draw(t, "weights")
		parts := split(units, weights, rapid.Float64Range(0, 0.999999).Draw(t, "offset"))
		sum, weight := 0, 0.0
		for _, w := range weights {
			weight += w
		}
		for i, n := range parts {
			sum += n
			if fair := weights[i] * float64(max(units, 0)) / weight; n < 0 || weight > 0 && math.Abs(float64(n)-fair) > 1.001 {
				t.Fatalf("%d units for a fair part of %v", n, fair)
			}
		}
		if want := max(units, 0); weight > 0 && sum != want || weight == 0 && sum != 0 {
			t.Fatalf("%d given out of %d", sum, want)
		}
	})
}

func TestSplitRoundsByChance(t *testing.T) {
	got := [3]int{}
	for i := range 100 {
		for pod, n := range split(1, []float64{1, 2, 1}, float64(i)/100) {
			got[pod] += n
		}
	}
	if got != [3]int{25, 50, 25} {
		t.Errorf("one unit for weights 1, 2, 1 went out %v times of 100", got)
	}
}
