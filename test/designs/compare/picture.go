package main

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/weirproxy/weir/internal/simulate/measure"
)

// highest is where a picture cuts off, in limits.
const highest = 3.5

// picture writes the scenario's, if it is to have one.
func picture(r *row, o *options) error {
	if o.images == "" || !slices.Contains(o.pictures, r.scenario.Name) {
		return nil
	}
	var b bytes.Buffer
	d := drawing{
		title:  r.scenario.Name + ": " + r.scenario.Title,
		note:   "admitted in the last " + short(r.window()) + ", % of the limit",
		top:    top(r),
		length: r.scenario.Duration,
	}
	for _, f := range r.scenario.Faults {
		d.away = append(d.away, measure.Span{From: f.At, To: f.At + f.For})
	}
	for i, c := range columns() {
		d.panels = append(d.panels, r.panel(c.name, r.runs[i][0]))
	}
	d.write(&b)
	file := filepath.Join(o.images, "accuracy-"+r.scenario.Name+".svg")
	if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
		return fmt.Errorf("picture of %s: %w", r.scenario.Name, err)
	}
	return nil
}

func (r *row) window() time.Duration { return r.scenario.Policy.Limits[0].Rates[0].Window.Duration }

func (r *row) panel(name string, run *measure.Run) panel {
	v := &run.Rates[0].Values
	return panel{
		name:  name,
		note:  fmt.Sprintf("over %s %%, under %s %%", number("%.0f", r.over(v)), number("%.0f", r.under(v))),
		fills: run.Rates[0].Series.Window,
	}
}

// top of the pictures' scale, in limits: a half above the fullest window, at most highest.
func top(r *row) float64 {
	most := 1.0
	for _, runs := range r.runs {
		most = max(most, slices.Max(runs[0].Rates[0].Series.Window))
	}
	return min(math.Ceil(2*most+0.2)/2, highest)
}

// short is a duration as a person says it.
func short(d time.Duration) string {
	if d == time.Second {
		return "second"
	}
	return fmt.Sprintf("%g seconds", d.Seconds())
}
