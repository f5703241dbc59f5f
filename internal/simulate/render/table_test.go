package render

import (
	"bytes"
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/weirproxy/weir/internal/simulate/measure"
)

func stat(mean, worst float64) measure.Stat { return measure.Stat{Mean: mean, Worst: worst, Sd: 0.5} }

func none() measure.Stat { return stat(math.NaN(), math.NaN()) }

// oneRate is a scenario of a rate, in three runs.
func oneRate(name string) Result {
	return Result{Pods: 10, Seconds: 20, Summary: &measure.Summary{
		Name: name, Single: true, Seed: 1, Runs: 3, UsageMessages: stat(199, 201),
		Rates: []measure.RateSummary{{
			Limit: "rate", Title: "1000/1s", Over: stat(9.84, 11.2), Under: stat(2.06, 2.4), OutageOver: none(), OutageUnder: none(),
			EnforceMillis: stat(12.3, 19), FalseDenials: stat(0.02, 0.1), Offered: 60000, Admitted: 20500, Counters: 1,
		}},
	}}
}

// twoLimits is a scenario of a policy, with a long name and texts that a terminal must not get.
func twoLimits() Result {
	r := oneRate("a scenario whose name is far too long for a table\x1b[2J")
	r.Single, r.Runs = false, 1
	r.Rates = append(r.Rates, r.Rates[0])
	r.Rates[0].Limit, r.Rates[1].Limit = "each-client-of-the-whole-service", "whole-service"
	r.Rates[1].Title = "100000/Day Asia/Singapore"
	r.Rates[1].Over, r.Rates[1].Under = stat(-41.2, -41.2), stat(-0.01, -0.01)
	r.Rates[1].FalseDenials, r.Rates[1].Offered, r.Rates[1].Admitted = none(), 0, 0
	r.Rates[1].OutageOver, r.Rates[1].OutageUnder = stat(0.3, 1), stat(68, 70)
	return r
}

func TestTable(t *testing.T) {
	missed := oneRate("S4")
	missed.Referenced = true
	over, sd := 7.0, 0.4
	missed.Misses = []measure.Miss{{Limit: "rate", Rate: "1000/1s", Measure: "over_percent", Got: 9.84, Reference: over, Tolerance: 2 * sd, Sd: sd}}
	held := oneRate("S1")
	held.Referenced = true
	single := oneRate("once")
	single.Runs = 1
	for name, results := range map[string][]Result{
		"table-one.txt":       {single},
		"table-reference.txt": {held, missed, oneRate("none")},
		"table-policy.txt":    {twoLimits()},
		"table-widest.txt":    {twoLimits(), missed},
	} {
		var b bytes.Buffer
		if err := Table(&b, results); err != nil {
			t.Fatal(err)
		}
		golden(t, name, b.Bytes())
		for line := range strings.Lines(b.String()) {
			if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > maxWidth && !strings.Contains(line, ": ") {
				t.Errorf("%s: a line of %d columns: %s", name, n, line)
			}
		}
	}
}
