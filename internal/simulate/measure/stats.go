package measure

import (
	"math"
	"math/rand/v2"
	"slices"
)

// Stat is one measure over the runs that have it; NaN where none has.
type Stat struct {
	Mean float64
	// Worst of the runs.
	Worst float64
	// Sd is the sample deviation of a single run; NaN below two runs.
	Sd float64
}

// newStat skips NaN. worst picks from two values.
func newStat(values []float64, worst func(a, b float64) float64) Stat {
	n, sum, extreme := 0.0, 0.0, math.NaN()
	for _, x := range values {
		if math.IsNaN(x) {
			continue
		}
		if n == 0 {
			extreme = x
		}
		n, sum, extreme = n+1, sum+x, worst(extreme, x)
	}
	return Stat{Mean: sum / n, Worst: extreme, Sd: deviation(values, sum/n)}
}

func deviation(values []float64, mean float64) float64 {
	n, squares := 0.0, 0.0
	for _, x := range values {
		if !math.IsNaN(x) {
			n, squares = n+1, squares+(x-mean)*(x-mean)
		}
	}
	if n < 2 {
		return math.NaN()
	}
	return math.Sqrt(squares / (n - 1))
}

func largest(a, b float64) float64  { return max(a, b) }
func smallest(a, b float64) float64 { return min(a, b) }

// Mean of values; NaN of none.
func Mean(values []float64) float64 {
	sum := 0.0
	for _, x := range values {
		sum += x
	}
	return sum / float64(len(values))
}

// Quantile of sorted values at q in [0, 1], between neighbours in proportion; NaN of none.
func Quantile(sorted []float64, q float64) float64 {
	if len(sorted) == 0 || math.IsNaN(q) {
		return math.NaN()
	}
	at := min(max(q, 0), 1) * float64(len(sorted)-1)
	i := int(at)
	if i+1 >= len(sorted) {
		return sorted[len(sorted)-1]
	}
	return sorted[i] + (at-float64(i))*(sorted[i+1]-sorted[i])
}

// Bootstrap is the 95 % percentile interval of stat over values, from draws resamples (at least 1). The same seed
// gives the same interval. stat may reorder what it is given and must not keep it. NaN of no values.
func Bootstrap(values []float64, stat func([]float64) float64, draws int, seed uint64) (lo, hi float64) {
	if len(values) == 0 {
		return math.NaN(), math.NaN()
	}
	rng := rand.New(rand.NewPCG(seed, 0xb007))
	sample := make([]float64, len(values))
	stats := make([]float64, max(draws, 1))
	for i := range stats {
		for k := range sample {
			sample[k] = values[rng.IntN(len(values))]
		}
		stats[i] = stat(sample)
	}
	slices.Sort(stats)
	return Quantile(stats, 0.025), Quantile(stats, 0.975)
}
