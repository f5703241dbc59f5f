//go:build !race

package simulate

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/weirproxy/weir/api/v1alpha1"
	"github.com/weirproxy/weir/internal/simulate/scenario"
)

// boundSeed draws the scenarios.
const boundSeed = 2026

// troubles are what may befall messages without leaving the bound's ground.
var troubles = []struct {
	name   string
	change func(*scenario.Scenario)
}{
	{"none", func(*scenario.Scenario) {}},
	{"reports lost", faulty(scenario.UsageLoss)},
	{"reports twice", faulty(scenario.UsageDuplicate)},
	{"acknowledgements lost", faulty(scenario.AckLoss)},
	{"decisions lost", faulty(scenario.DecisionLoss)},
	{"late acknowledgements", func(s *scenario.Scenario) {
		s.Network.Ack = &scenario.Delay{Min: 20 * time.Millisecond, Max: 150 * time.Millisecond}
	}},
	{"slow network", func(s *scenario.Scenario) {
		slow := scenario.Delay{Min: 2 * time.Millisecond, Max: 60 * time.Millisecond}
		s.Network = scenario.Network{Uplink: slow, Downlink: slow, TailProbability: 0.1, TailMax: 250 * time.Millisecond}
		s.Timing.StaleAfter = time.Second
		s.Policy.Failure.StaleAfter = &v1alpha1.Duration{Duration: time.Second}
	}},
}

func faulty(kind scenario.Kind) func(*scenario.Scenario) {
	return func(s *scenario.Scenario) {
		s.Faults = append(s.Faults, scenario.Fault{Kind: kind, Probability: 0.2})
	}
}

func longBound() bool { return os.Getenv("WEIR_LONG") != "" }

// troubled is a scenario with one of the troubles.
type troubled struct {
	*scenario.Scenario
	trouble string
}

// boundScenarios are random ones, with the troubles by turns.
func boundScenarios() (out []troubled) {
	n, pods := 42, 60
	if longBound() {
		n, pods = 140, math.MaxInt
	}
	for i, s := range scenario.Random(boundSeed, n) {
		trouble := troubles[i%len(troubles)]
		trouble.change(s)
		if s.Pods <= pods {
			out = append(out, troubled{s, trouble.name})
		}
	}
	return out
}

// ALGORITHM 5: what a window holds beyond its limit is no more than lag, drift of shares, overcommit and c make of it, with c
// explicit for each pod; without fallback, start-up, owner moves and changed limits. A violation leaves its scenario,
// which WEIR_SCENARIO=file runs again.
func TestTheBoundHolds(t *testing.T) {
	if file := os.Getenv("WEIR_SCENARIO"); file != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		s, err := scenario.Parse(file, text)
		if err != nil {
			t.Fatal(err)
		}
		holdTo(t, s)
		return
	}
	var all found
	total := map[string]*found{}
	for _, trouble := range troubles {
		total[trouble.name] = new(found)
	}
	for _, s := range boundScenarios() {
		b := holdTo(t, s.Scenario)
		total[s.trouble].add(&b.found)
		all.add(&b.found)
	}
	for _, trouble := range troubles {
		t.Logf("%-22s %s", trouble.name, total[trouble.name])
	}
	t.Logf("%-22s %s", "all", &all)
	t.Logf("closest: %s", &all.closest)
	if all.over < 500 || all.admissions < 10_000 {
		t.Errorf("hardly a window was full: %s", &all)
	}
}

func holdTo(t *testing.T, s *scenario.Scenario) *bound {
	t.Helper()
	b, err := runBound(s, s.Seed, nil)
	if b == nil {
		t.Fatal(err)
	}
	if err != nil {
		text, broken := s.Marshal()
		file := filepath.Join(t.ArtifactDir(), s.Name+".yaml")
		if broken = errors.Join(broken, os.WriteFile(file, text, 0o600)); broken != nil {
			t.Log(broken)
		}
		t.Errorf("seed %d: %s (%s of scenario.Random(%d, …)): %v\nWEIR_SCENARIO=%s runs it again (go test -artifacts keeps it):\n%s",
			s.Seed, s.Title, s.Name, boundSeed, err, file, text)
	}
	return b
}

func (f *found) String() string {
	n := float64(max(f.over, 1))
	m := &f.sum
	return fmt.Sprintf("%7d admissions, %6d moments (%d outside), over at %5d: excess/bound median %.2f p90 %.2f most %.2f, "+
		"within twice %.1f %%, bound/limit median %.3f p90 %.3f; mean excess %.2f = at most lag %.2f drift %.2f over %.2f pace %.2f rounding %.2f clocks %.2f",
		f.admissions, f.moments, f.loose, f.over, quantile(f.part, 0.5), quantile(f.part, 0.9), quantile(f.part, 1),
		100*float64(f.within2)/n, quantile(f.allows, 0.5), quantile(f.allows, 0.9),
		m.excess/n, m.lag/n, m.drift/n, m.over/n, m.pace/n, m.rounding/n, m.clocks/n)
}

func quantile(x []float64, q float64) float64 {
	if len(x) == 0 {
		return 0
	}
	x = slices.Sorted(slices.Values(x))
	return x[min(int(q*float64(len(x))), len(x)-1)]
}

// No part of c is idle: without it some pod takes more to be left than there is.
func TestEachAllowanceOfTheBoundIsNeeded(t *testing.T) {
	for _, part := range []struct {
		name string
		out  func(*bound)
		long bool
	}{
		{"sub-bucket", func(b *bound) { b.bucket = 0 }, false},
		{"undecided", func(b *bound) { b.undecided = 0 }, false},
		{"guessed", func(b *bound) { b.guessed = 0 }, true},
	} {
		t.Run(part.name, func(t *testing.T) {
			if part.long && !longBound() {
				t.Skip("it is rarely needed: make test-long")
			}
			for _, s := range scenario.Random(boundSeed, 120) {
				if s.Pods > 60 {
					continue
				}
				if _, err := runBound(s, s.Seed, part.out); err != nil {
					t.Logf("%s: %v", s.Name, err)
					return
				}
			}
			t.Error("the bound holds without it")
		})
	}
}
