//go:build !race

package simulate_test

import (
	"math"
	"path/filepath"
	"testing"

	"github.com/weirproxy/weir/internal/simulate"
)

// bars of the regimes: the most that each rate, in the policy's order, may be over and under its limit on the mean,
// percent, with some room over what was seen (docs/design/regimes.md). quick: two runs of it take a second or two.
var bars = map[string]struct {
	quick       bool
	over, under []float64
}{
	"A1":  {true, at(3), at(18)},
	"A2":  {true, at(5), at(75)},
	"B1":  {false, at(250), at(30)},
	"B1w": {false, at(240), at(12)},
	"C1":  {true, at(7), at(7)},
	"C2":  {true, at(30), at(5)},
	"C3":  {true, at(10), at(3)},
	"D1":  {true, at(-40), at(45)},
	"D2":  {true, at(5), at(75)},
	"E1":  {true, at(35), at(12)},
	"K1":  {true, at(5), at(4)},
	"K2":  {true, at(6), at(5)},
	"K3":  {true, at(6), at(11)},
	"M1":  {true, at(45, 2), at(3, 3)},
	"M1b": {true, at(35, 5), at(5, 5)},
	"M2":  {true, at(8, 2), at(3, 3)},
	"M3":  {false, at(80), at(3)},
	"M4":  {true, at(50), at(7)},
	"M4b": {true, at(50), at(18)},
	"M4c": {true, at(50), at(7)},
	"N1":  {true, at(5), at(5)},
	"N2":  {true, at(6), at(5)},
	"N3":  {true, at(18), at(9)},
	"P1":  {false, at(2), at(5)},
	"V1":  {true, at(5), at(5)},
	"V1q": {true, at(10), at(5)},
	"V2":  {true, at(5), at(9)},
	"V2q": {true, at(8), at(8)},
	"V3":  {true, at(6), at(5)},
	"V3q": {true, at(10), at(5)},
	"X1":  {true, at(3), at(9)},
	"X2":  {true, at(3), at(4)},
	"X3":  {true, at(0), at(17)},
}

func at(percent ...float64) []float64 { return percent }

// The regimes that the reference had never simulated: the partition's budget, costs, eviction, slow acknowledgements,
// wrong and late numbers of pods, owners that move, die or stall, several limits on one request, Strict, a calendar.
func TestRegimes(t *testing.T) {
	dir := filepath.Join(scenarios, "regimes")
	for _, name := range names(t, dir) {
		t.Run(name, func(t *testing.T) {
			bar, ok := bars[name]
			if !ok {
				t.Fatal("it has no bar: add one")
			}
			if !bar.quick && !long() {
				t.Skip("it takes long: make test-long")
			}
			t.Parallel()
			s := read(t, filepath.Join(dir, name+".yaml"))
			o := simulate.Options{Workers: 1}
			if !long() {
				o.Runs = min(s.Runs, 2)
			}
			sum := run(t, s, o)
			t.Log(s.Title + ": " + line(sum))
			for i := range sum.Rates {
				r := &sum.Rates[i]
				if r.Over.Mean > bar.over[i] || math.IsNaN(r.Over.Mean) {
					t.Errorf("%s: %.1f %% over, want at most %.1f", r.Limit, r.Over.Mean, bar.over[i])
				}
				if r.Under.Mean > bar.under[i] || math.IsNaN(r.Under.Mean) {
					t.Errorf("%s: %.1f %% under, want at most %.1f", r.Limit, r.Under.Mean, bar.under[i])
				}
			}
		})
	}
}
