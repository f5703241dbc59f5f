package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/cog/variants"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
)

// row is a heading and the panels below it.
type row struct {
	title  string
	panels []panel
}

// panel is what the two kinds that we use have in common. Its help says what a healthy one looks like.
type panel struct {
	title, help, unit string
	queries           []query
	// number: one large figure, the newest; else curves over time.
	number bool
	// stacked curves add up to something.
	stacked bool
	// bad are the values from which a number is yellow and red, or a curve meets a line; none: neither.
	bad []float64
}

// query is an expression and how its series are called, "{{pod}}".
type query struct{ legend, expr string }

// addTo adds the row with panels of the ids that follow id. A folded row holds its panels, else they follow it.
func (r row) addTo(b *board, id uint32, folded bool) {
	heading := dashboard.NewRowBuilder(r.title).Id(id).Collapsed(folded)
	if !folded {
		b.WithRow(heading)
	}
	for i, p := range r.panels {
		if made := p.build(id + 1 + uint32(i)); folded {
			heading.WithPanel(made)
		} else {
			b.WithPanel(made)
		}
	}
	if folded {
		b.WithRow(heading)
	}
}

func (p panel) build(id uint32) cog.Builder[dashboard.Panel] {
	var targets []cog.Builder[variants.Dataquery]
	for i, q := range p.queries {
		t := prometheus.NewDataqueryBuilder().RefId(string(rune('A' + i))).Datasource(source()).
			Expr(q.expr).LegendFormat(q.legend)
		if p.number {
			t.Instant()
		} else {
			t.Range()
		}
		targets = append(targets, t)
	}
	if p.number {
		return p.figure(targets).Id(id)
	}
	return p.curves(targets).Id(id)
}

// figure is an eighth of the width: those of a row stand beside one another.
func (p panel) figure(targets []cog.Builder[variants.Dataquery]) *stat.PanelBuilder {
	return stat.NewPanelBuilder().Title(p.title).Description(p.help).Datasource(source()).
		Unit(p.unit).NoValue("none").Height(4).Span(3).Targets(targets).
		Thresholds(p.thresholds()).
		ColorMode(common.BigValueColorModeValue).GraphMode(common.BigValueGraphModeNone).
		ReduceOptions(common.NewReduceDataOptionsBuilder().Calcs([]string{"lastNotNull"}))
}

// curves are a third of the width.
func (p panel) curves(targets []cog.Builder[variants.Dataquery]) *timeseries.PanelBuilder {
	b := timeseries.NewPanelBuilder().Title(p.title).Description(p.help).Datasource(source()).
		Unit(p.unit).Min(0).Height(8).Span(8).Targets(targets).
		FillOpacity(10).ShowPoints(common.VisibilityModeNever).
		Thresholds(p.thresholds()).
		Legend(common.NewVizLegendOptionsBuilder().ShowLegend(true).
			DisplayMode(common.LegendDisplayModeList).Placement(common.LegendPlacementBottom)).
		Tooltip(common.NewVizTooltipOptionsBuilder().Mode(common.TooltipDisplayModeMulti).Sort(common.SortOrderDescending))
	if p.stacked {
		b.Stacking(common.NewStackingConfigBuilder().Mode(common.StackingModeNormal))
	}
	if len(p.bad) > 0 {
		b.ThresholdsStyle(common.NewGraphThresholdsStyleConfigBuilder().Mode(common.GraphThresholdsStyleModeDashed))
	}
	return b
}

// thresholds are green below the first bad value, yellow from it, red from the last.
func (p panel) thresholds() *dashboard.ThresholdsConfigBuilder {
	steps := []dashboard.Threshold{{Color: "green"}}
	for i, at := range p.bad {
		color := "yellow"
		if i == len(p.bad)-1 {
			color = "red"
		}
		steps = append(steps, dashboard.Threshold{Value: &at, Color: color})
	}
	return dashboard.NewThresholdsConfigBuilder().Mode(dashboard.ThresholdsModeAbsolute).Steps(steps)
}
