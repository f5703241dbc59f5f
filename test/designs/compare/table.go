package main

import (
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/weirproxy/weir/internal/simulate/measure"
	"github.com/weirproxy/weir/internal/simulate/scenario"
)

// row is one scenario; runs are those of each column.
type row struct {
	scenario *scenario.Scenario
	runs     [][]*measure.Run
}

// table is one measure, or a pair of them, of every row and column.
type table struct {
	title string
	cell  func(row *row, runs []*measure.Run) string
}

func tables() []table {
	return []table{
		{"over % / under % (O2, O3: during the outage)", overUnder},
		{"worst run's over % (O2, O3: during the outage)", worst},
		{"false denials, % of the requests offered", value("%.1f", func(v *measure.Values) float64 { return v.FalseDenials })},
		{"enforce, ms", value("%.0f", func(v *measure.Values) float64 { return v.EnforceMillis })},
		{"messages and calls a second: reports of all pods, or calls to the store, + broadcasts", messages},
	}
}

func overUnder(r *row, runs []*measure.Run) string {
	return fmt.Sprintf("%s / %s", number("%.0f", mean(runs, r.over)), number("%.0f", mean(runs, r.under)))
}

func worst(r *row, runs []*measure.Run) string {
	most := math.NaN()
	for _, run := range runs {
		if v := r.over(&run.Rates[0].Values); !math.IsNaN(v) && !(v <= most) {
			most = v
		}
	}
	return number("%.0f", most)
}

func messages(_ *row, runs []*measure.Run) string {
	up, down := 0.0, 0.0
	for _, run := range runs {
		up += run.UsageMessages / float64(len(runs))
		down += run.DecisionBatches / float64(len(runs))
	}
	return fmt.Sprintf("%.0f + %.0f", up, down)
}

func value(format string, of func(*measure.Values) float64) func(*row, []*measure.Run) string {
	return func(_ *row, runs []*measure.Run) string { return number(format, mean(runs, of)) }
}

// outage says whether the row is about what happens while the aggregator is away.
func (r *row) outage() bool { return len(r.scenario.Faults) > 0 }

func (r *row) over(v *measure.Values) float64 {
	if r.outage() {
		return v.OutageOver
	}
	return v.Over
}

func (r *row) under(v *measure.Values) float64 {
	if r.outage() {
		return v.OutageUnder
	}
	return v.Under
}

// mean over the runs that have the value; NaN if none has.
func mean(runs []*measure.Run, of func(*measure.Values) float64) float64 {
	sum, n := 0.0, 0.0
	for _, run := range runs {
		if v := of(&run.Rates[0].Values); !math.IsNaN(v) {
			sum += v
			n++
		}
	}
	return sum / n
}

func number(format string, v float64) string {
	if math.IsNaN(v) {
		return "–"
	}
	s := fmt.Sprintf(format, v)
	if strings.Trim(s, "-0.") == "" {
		return strings.TrimPrefix(s, "-")
	}
	return s
}

// writeTables writes them in Markdown, with what the columns are below.
func writeTables(w io.Writer, rows []row) error {
	var b strings.Builder
	for _, t := range tables() {
		fmt.Fprintf(&b, "%s\n\n| scenario |", t.title)
		rule := "|---|"
		for _, c := range columns() {
			fmt.Fprintf(&b, " %s |", c.name)
			rule += "---|"
		}
		fmt.Fprintf(&b, "\n%s\n", rule)
		for i := range rows {
			r := &rows[i]
			fmt.Fprintf(&b, "| %s %s |", r.scenario.Name, r.scenario.Title)
			for _, runs := range r.runs {
				fmt.Fprintf(&b, " %s |", t.cell(r, runs))
			}
			b.WriteByte('\n')
		}
		b.WriteByte('\n')
	}
	for _, c := range columns() {
		fmt.Fprintf(&b, "- %s: %s\n", c.name, c.title)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
