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

const scenarios = "../../test/scenarios"

// costly scenarios take more than a few seconds a run.
var costly = map[string]bool{"S8": true, "W3": true}

// missed are the references that are not reached, with what is held instead, percent, and why. docs/accuracy.md says
// more.
var missed = map[string]struct {
	over, under float64
	why         string
}{}

func long() bool { return os.Getenv("WEIR_LONG") != "" }

// Every scenario holds its reference: the mean over its runs is within the tolerance that the format states. Under
// WEIR_LONG all of its runs count; else a few, of those that are quick.
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(scenarios, "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, f := range files {
		name := strings.TrimSuffix(filepath.Base(f), ".yaml")
		t.Run(name, func(t *testing.T) {
			if costly[name] && !long() {
				t.Skip("it takes long: make test-long")
			}
			t.Parallel()
			s := read(t, f)
			o := simulate.Options{Workers: 1}
			if !long() {
				o.Runs = min(s.Runs, 3)
			}
			sum := run(t, s, o)
			t.Log(line(sum))
			for _, m := range sum.Against(s.Reference) {
				t.Errorf("%s", m)
			}
		})
	}
}

func read(t *testing.T, file string) *scenario.Scenario {
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

func run(t *testing.T, s *scenario.Scenario, o simulate.Options) *measure.Summary {
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
		fmt.Fprintf(&b, "%s %s: over %.1f (%.1f, worst %.1f) under %.1f (%.1f) enforce %.0f ms false %.2f", r.Limit, r.Title,
			r.Over.Mean, r.Over.Sd, r.Over.Worst, r.Under.Mean, r.Under.Sd, r.EnforceMillis.Mean, r.FalseDenials.Mean)
		if !math.IsNaN(r.OutageOver.Mean) {
			fmt.Fprintf(&b, " outage over %.1f under %.1f", r.OutageOver.Mean, r.OutageUnder.Mean)
		}
		b.WriteString("; ")
	}
	fmt.Fprintf(&b, "%.0f usage messages, %.0f entries, %.0f records a second", s.UsageMessages.Mean, s.UsageEntries.Mean, s.DecisionRecords.Mean)
	return b.String()
}
