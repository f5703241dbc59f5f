package measure

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestQuantile(t *testing.T) {
	sorted := []float64{1, 2, 4, 8, 16}
	for q, want := range map[float64]float64{-1: 1, 0: 1, 0.25: 2, 0.5: 4, 0.6: 5.6, 1: 16, 2: 16} {
		wantValue(t, "quantile", Quantile(sorted, q), want)
	}
	wantValue(t, "quantile of one", Quantile(sorted[:1], 0.9), 1)
	wantValue(t, "quantile of none", Quantile(nil, 0.5), nan)
	wantValue(t, "no quantile", Quantile(sorted, nan), nan)
	wantValue(t, "mean of none", Mean(nil), nan)
}

// The mean of 400 values of unit deviation has an interval of ±1.96/20.
func TestBootstrapOfAMeanIsItsNormalInterval(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	values := make([]float64, 400)
	for i := range values {
		values[i] = 3 + rng.NormFloat64()
	}
	mean, sd := Mean(values), deviation(values, Mean(values))
	lo, hi := Bootstrap(values, Mean, 4000, 7)
	for _, end := range []float64{mean - lo, hi - mean} {
		if want := 1.96 * sd / 20; math.Abs(end-want) > 0.15*want {
			t.Errorf("[%v, %v] about %v: want ±%v", lo, hi, mean, want)
		}
	}
}

func TestBootstrapIsTheSameForASeedAndKeepsItsValues(t *testing.T) {
	values := []float64{5, 1, 4, 2, 3}
	median := func(x []float64) float64 {
		slices.Sort(x)
		return Quantile(x, 0.5)
	}
	lo, hi := Bootstrap(values, median, 500, 1)
	again, top := Bootstrap(values, median, 500, 1)
	if lo != again || hi != top || lo >= hi || lo < 1 || hi > 5 || !slices.Equal(values, []float64{5, 1, 4, 2, 3}) {
		t.Errorf("[%v, %v], then [%v, %v]; values %v", lo, hi, again, top, values)
	}
	if lo, hi := Bootstrap(values, Mean, 0, 1); lo != hi {
		t.Errorf("one draw gives [%v, %v]", lo, hi)
	}
	lo, _ = Bootstrap(nil, Mean, 10, 1)
	wantValue(t, "interval of none", lo, nan)
}
