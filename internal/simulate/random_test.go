//go:build !race

package simulate_test

import (
	"context"
	"math"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/weirproxy/weir/internal/simulate"
	"github.com/weirproxy/weir/internal/simulate/measure"
	"github.com/weirproxy/weir/internal/simulate/scenario"
)

// The seeds that scenarios are drawn from: what is tuned is tuned on the first half, what is reported is the second.
const (
	tunedOn  = 1
	reported = 2
	half     = 200
)

// Random scenarios that nothing was tuned on: no worse than the reference (median, p90 and worst of 120 such: over 2.6,
// 12.2, 40.0, under 1.5, 7.6, 42.8 percent) within the bootstrap interval.
func TestRandomScenarios(t *testing.T) {
	if !long() {
		t.Skip("it takes long: make test-long")
	}
	for _, h := range []struct {
		name string
		seed uint64
	}{{"tuned on", tunedOn}, {"reported", reported}} {
		over, under := random(t, h.seed)
		judge(t, h.name+", over", over, 2.6, 12.2, 40.0)
		judge(t, h.name+", under", under, 1.5, 7.6, 42.8)
	}
}

// random runs one half of the scenarios, each once.
func random(t *testing.T, seed uint64) (over, under []float64) {
	all := scenario.Random(seed, half)
	over, under = make([]float64, len(all)), make([]float64, len(all))
	next := make(chan int)
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for i := range next {
				r, err := simulate.Run(context.Background(), all[i], all[i].Seed)
				if err != nil {
					t.Error(err)
					continue
				}
				over[i], under[i] = r.Rates[0].Over, r.Rates[0].Under
				if over[i] > 25 || under[i] > 20 {
					file, _ := all[i].Marshal()
					t.Logf("%s: over %.1f under %.1f\n%s", all[i].Name, over[i], under[i], file)
				}
			}
		})
	}
	for i := range all {
		next <- i
	}
	close(next)
	workers.Wait()
	return over, under
}

func judge(t *testing.T, what string, values []float64, median, p90, worst float64) {
	for _, m := range []struct {
		name      string
		q         float64
		reference float64
	}{{"median", 0.5, median}, {"p90", 0.9, p90}, {"worst", 1, worst}} {
		stat := func(v []float64) float64 { return measure.Quantile(slices.Sorted(slices.Values(v)), m.q) }
		lo, hi := measure.Bootstrap(values, stat, 1000, 1)
		got := stat(values)
		t.Logf("%s: %s %.1f (%.1f to %.1f), reference %.1f", what, m.name, got, lo, hi, m.reference)
		if math.IsNaN(got) || lo > m.reference {
			t.Errorf("%s: %s %.1f is worse than %.1f", what, m.name, got, m.reference)
		}
	}
}
