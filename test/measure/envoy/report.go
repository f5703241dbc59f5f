//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"io"
)

// Names of variants that bars are about.
const (
	noopName      = "grpc-go, a Check that does nothing"
	ownName       = "weir, --server=own"
	grpcName      = "weir, --server=grpc"
	baseName      = "as in the first table"
	quietName     = "quiet"
	quietLoadName = "quiet, another pod under the same load"
	decisionsName = "decisions of 400 counters at their limit"
)

// bar is a figure that is to be held.
type bar struct {
	What string  `json:"bar"`
	Most float64 `json:"most"`
	Got  float64 `json:"got"`
	Held bool    `json:"held"`
}

// report is all that was measured.
type report struct {
	rows []row
	bars []bar
}

func (r *report) row(suite, variant, request string, connections int) *row {
	for i := range r.rows {
		w := &r.rows[i]
		if w.Suite == suite && w.Variant == variant && w.Case == request && w.Connections == connections {
			return w
		}
	}
	return nil
}

// judge holds what was measured against the bars.
func (r *report) judge() {
	against := func(what string, most float64, a, b *row, of func(*row) float64) {
		if a != nil && b != nil && of(b) > 0 {
			got := of(a) / of(b)
			r.bars = append(r.bars, bar{what, most, got, got <= most})
		}
	}
	own := func(n int) *row { return r.row("servers", ownName, "allow", n) }
	noop := func(n int) *row { return r.row("servers", noopName, "allow", n) }
	user := func(w *row) float64 { return w.Checker }
	p99 := func(w *row) float64 { return w.P99 }
	against("CPU a check of the no-op's, c=32", 0.2, own(32), noop(32), user)
	against("CPU a check of the no-op's, c=1", 0.4, own(1), noop(1), user)
	against("added p50 of the no-op's, c=1", 0.6, own(1), noop(1), func(w *row) float64 { return w.AddedP50 })
	against("p99 of the no-op's, c=32", 0.6, own(32), noop(32), p99)
	for i := range r.rows {
		w := &r.rows[i]
		quiet := quietName
		if w.Variant == decisionsName {
			quiet = quietLoadName
		}
		if w.Suite == "disturbed" && w.Variant != quietName && w.Variant != quietLoadName {
			against("p99 of the quiet run's: "+w.Variant, 1.5, w, r.row(w.Suite, quiet, w.Case, w.Connections), p99)
		}
	}
}

func (r *report) missed() bool {
	for _, b := range r.bars {
		if !b.Held {
			return true
		}
	}
	return false
}

func (r *report) writeJSON(out io.Writer) error {
	e := json.NewEncoder(out)
	for i := range r.rows {
		if err := e.Encode(&r.rows[i]); err != nil {
			return err
		}
	}
	for _, b := range r.bars {
		if err := e.Encode(b); err != nil {
			return err
		}
	}
	return nil
}

// writeText writes the tables as docs/performance.md has them.
func (r *report) writeText(out io.Writer) {
	titles := map[string]string{"servers": "What answers the check", "cost": "What each choice costs", "disturbed": "With something going on"}
	suite := ""
	for i := range r.rows {
		w := &r.rows[i]
		if w.Suite != suite {
			suite = w.Suite
			fmt.Fprintf(out, "### %s\n\n| c | | | req/s (spread) | p50 | p99 | added p50 | CPU of Envoy | CPU of the checker | of the %s's: CPU, added p50, p99 |\n"+
				"|---|---|---|---|---|---|---|---|---|---|\n", titles[suite], r.baseName(suite))
		}
		fmt.Fprintf(out, "| %d | %s | %s | %.0f (%.0f %%) | %.0f µs | %.0f µs | %s | %.1f µs | %.1f µs | %s |\n", w.Connections, w.Variant, w.Case, w.Rate,
			100*w.RateSpread, w.P50, w.P99, orDash(w.AddedP50, "%.0f µs"), w.Envoy, w.Checker, r.ratios(w))
		if i+1 == len(r.rows) || r.rows[i+1].Suite != suite {
			fmt.Fprintln(out)
		}
	}
	fmt.Fprint(out, "### Bars\n\n| what | at most | measured | |\n|---|---|---|---|\n")
	for _, b := range r.bars {
		verdict := "held"
		if !b.Held {
			verdict = "**missed**"
		}
		fmt.Fprintf(out, "| %s | %.2f | %.2f | %s |\n", b.What, b.Most, b.Got, verdict)
	}
}

// baseName is the variant that a suite's ratios are to.
func (r *report) baseName(suite string) string {
	return map[string]string{"servers": "no-op", "cost": "first line", "disturbed": "quiet run"}[suite]
}

func (r *report) base(w *row) *row {
	switch {
	case w.Suite == "servers":
		return r.row(w.Suite, noopName, "allow", w.Connections)
	case w.Suite == "cost":
		return r.row(w.Suite, baseName, "allow", w.Connections)
	case w.Variant == decisionsName:
		return r.row(w.Suite, quietLoadName, "allow", w.Connections)
	default:
		return r.row(w.Suite, quietName, "allow", w.Connections)
	}
}

func (r *report) ratios(w *row) string {
	b := r.base(w)
	if b == nil || b == w || w.Checker == 0 {
		return "–"
	}
	added := "–"
	if b.AddedP50 > 0 {
		added = fmt.Sprintf("%.2f", w.AddedP50/b.AddedP50)
	}
	return fmt.Sprintf("%.2f, %s, %.2f", w.Checker/b.Checker, added, w.P99/b.P99)
}

func orDash(v float64, format string) string {
	if v == 0 {
		return "–"
	}
	return fmt.Sprintf(format, v)
}
