//go:build !race

package simulate_test

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirproxy/weir/internal/simulate"
	"github.com/weirproxy/weir/internal/simulate/measure"
	"github.com/weirproxy/weir/internal/simulate/scenario"
)

// scenarios is where the project's scenario files lie.
const scenarios = "../../test/scenarios"

// quick are the scenarios of which a few runs take a second or so; the others wait for WEIR_LONG.
var quick = map[string]bool{
	"S1": true, "S3": true, "S5": true, "S6": true, "S6b": true, "S10": true, "S11": true, "T1": true,
	"L1": true, "L2": true, "L3": true, "L4": true, "L5": true, "O2": true, "O3": true, "O4": true, "O5": true,
}

// missed are the references that are not reached, percent: what is held instead. docs/accuracy.md says why.
var missed = map[string]map[string]float64{
	"S3": {"under_percent": 2.5}, // 1.6 + 0.5
	"S8": {"over_percent": 13},   // 8.4 + 0.5
	"L4": {"under_percent": 4.5}, // 1.9 + 2
	"L5": {"under_percent": 4.9}, // 2.3 + 2
}

func long() bool { return os.Getenv("WEIR_LONG") != "" }

// Every scenario holds its reference: the mean over its runs is within the tolerance that the format states. Under
// WEIR_LONG all of them run, as often as they say; else a few runs of the quick ones.
func TestScenarios(t *testing.T) {
	for _, name := range names(t, scenarios) {
		t.Run(name, func(t *testing.T) {
			if !quick[name] && !long() {
				t.Skip("it takes long: make test-long")
			}
			t.Parallel()
			s := read(t, filepath.Join(scenarios, name+".yaml"))
			o := simulate.Options{Workers: 1}
			if !long() {
				o.Runs = min(s.Runs, 5)
			}
			sum := run(t, s, o)
			t.Log(line(sum))
			for _, m := range sum.Against(s.Reference) {
				if most, ok := missed[name][m.Measure]; ok && m.Got <= most {
					t.Logf("known: %s", m)
					continue
				}
				t.Errorf("%s", m)
			}
		})
	}
}

// The same file and seed give the same result, whatever else runs beside; another seed gives another.
func TestSameSeedSameResult(t *testing.T) {
	s := read(t, filepath.Join(scenarios, "regimes", "M1.yaml"))
	s.Duration = s.SteadyFrom
	s.SteadyFrom /= 2
	text := func(o simulate.Options) string {
		runs, err := simulate.RunAll(context.Background(), s, o)
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		for _, r := range runs {
			fmt.Fprintf(&b, "%d %+v %+v %v\n", r.Requests, r.Rates[0].Values, *r.Rates[1].Series, r.DecisionRecords)
		}
		return b.String()
	}
	once := text(simulate.Options{Runs: 2, Workers: 2})
	if again := text(simulate.Options{Runs: 2, Workers: 1}); again != once {
		t.Errorf("the same seeds gave\n%s\nand\n%s", once, again)
	}
	if other := text(simulate.Options{Runs: 2, Seed: 77}); other == once {
		t.Error("another seed gave the same")
	}
}

// A run ends soon after its context.
func TestARunEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	s := read(t, filepath.Join(scenarios, "W3.yaml"))
	if _, err := simulate.RunAll(ctx, s, simulate.Options{}); err == nil {
		t.Error("it ran to its end")
	}
}

// Even load is simulated at 2 million requests a second of processor time and more: go test -bench Even.
func BenchmarkEven(b *testing.B) {
	s := read(b, filepath.Join(scenarios, "S1.yaml"))
	s.Policy.Limits[0].Rates[0].Limit = 100_000
	for i := range s.Traffic[0].Rate {
		s.Traffic[0].Rate[i].Value *= 30
	}
	s.Duration, s.SteadyFrom = 4*1e9, 1e9
	requests := uint64(0)
	for b.Loop() {
		r, err := simulate.Run(context.Background(), s, 1)
		if err != nil {
			b.Fatal(err)
		}
		requests += r.Requests
	}
	b.ReportMetric(float64(requests)/b.Elapsed().Seconds()/1e6, "Mrequests/s")
}

func names(t testing.TB, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios in %s: %v", dir, err)
	}
	for i, f := range files {
		files[i] = strings.TrimSuffix(filepath.Base(f), ".yaml")
	}
	return files
}

func read(t testing.TB, file string) *scenario.Scenario {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	s, err := scenario.Parse(filepath.Base(file), b)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func run(t testing.TB, s *scenario.Scenario, o simulate.Options) *measure.Summary {
	t.Helper()
	runs, err := simulate.RunAll(context.Background(), s, o)
	if err != nil {
		t.Fatal(err)
	}
	return measure.Summarize(runs)
}

func line(s *measure.Summary) string {
	var b strings.Builder
	for i := range s.Rates {
		r := &s.Rates[i]
		fmt.Fprintf(&b, "%s %s: over %.1f (sd %.1f, worst %.1f) under %.1f (sd %.1f) enforce %.0f ms false denials %.2f", r.Limit, r.Title,
			r.Over.Mean, r.Over.Sd, r.Over.Worst, r.Under.Mean, r.Under.Sd, r.EnforceMillis.Mean, r.FalseDenials.Mean)
		if !math.IsNaN(r.OutageOver.Mean) {
			fmt.Fprintf(&b, " outage over %.1f under %.1f", r.OutageOver.Mean, r.OutageUnder.Mean)
		}
		b.WriteString("; ")
	}
	fmt.Fprintf(&b, "%.0f usage messages, %.0f entries, %.0f records a second", s.UsageMessages.Mean, s.UsageEntries.Mean, s.DecisionRecords.Mean)
	return b.String()
}
