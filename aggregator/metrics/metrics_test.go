package metrics

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/weirproxy/weir/aggregator/partition"
)

// A partition that is claimed anew begins its counts at 0; what is exported only grows.
func TestCountsGrowOverClaims(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	m := New(reg)
	m.Observe(3, partition.Stats{Messages: 10, Units: 5, Malformed: 2}, partition.Gauges{Counters: 7, Live: true})
	m.Observe(3, partition.Stats{Messages: 12, Units: 6, Malformed: 2}, partition.Gauges{Counters: 8})
	m.Released(3)
	m.Observe(3, partition.Stats{Messages: 13, Units: 1}, partition.Gauges{Counters: 1})
	m.Gap(3, 5, 9)
	m.Gap(3, 9, 5)
	want := `
# HELP weir_aggregator_counters Counters held.
# TYPE weir_aggregator_counters gauge
weir_aggregator_counters{partition="3"} 1
# HELP weir_aggregator_usage_lost_total Usage offsets that were gone before they were read.
# TYPE weir_aggregator_usage_lost_total counter
weir_aggregator_usage_lost_total{partition="3"} 4
# HELP weir_aggregator_usage_messages_total Records read from the usage topic.
# TYPE weir_aggregator_usage_messages_total counter
weir_aggregator_usage_messages_total{partition="3"} 25
# HELP weir_aggregator_usage_units_total Units counted.
# TYPE weir_aggregator_usage_units_total counter
weir_aggregator_usage_units_total{partition="3"} 7
`
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want), "weir_aggregator_counters", "weir_aggregator_usage_lost_total",
		"weir_aggregator_usage_messages_total", "weir_aggregator_usage_units_total"); err != nil {
		t.Error(err)
	}
}

// Case 18: no metric has a label that holds what a client sends.
func TestCase18LabelsAreBounded(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	m := New(reg)
	m.Observe(3, partition.Stats{Messages: 1}, partition.Gauges{})
	m.Limits(3, []partition.Seen{{Policy: "shop/orders", Limit: "each", Rate: "100/1s"}})
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, x := range f.Metric {
			for _, l := range x.Label {
				if n := l.GetName(); !slices.Contains([]string{"partition", "reason", "policy", "limit", "rate"}, n) {
					t.Errorf("%s has the label %s", f.GetName(), n)
				}
			}
		}
	}
	if problems, err := testutil.GatherAndLint(reg); err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
}

// What a limit was over by only grows over claims; a limit that is gone, with its policy or its partition, leaves no
// series.
func TestLimitsAreSeenAndForgotten(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	m := New(reg)
	each := partition.Seen{Policy: "shop/orders", Limit: "each", Rate: "100/1s", Fullest: 1.02, OverUnits: 5, OverSeconds: 2}
	gone := partition.Seen{Policy: "shop/orders", Limit: "gone", Rate: "1/1s", Fullest: 1}
	m.Limits(3, []partition.Seen{each, gone})
	each.OverUnits, each.OverSeconds, each.Fullest = 8, 3, 0.5
	m.Limits(3, []partition.Seen{each})
	each.OverUnits, each.OverSeconds = 1, 0.5 // met anew
	m.Limits(3, []partition.Seen{each})
	m.Limits(4, []partition.Seen{each})
	m.Released(4)
	want := `
# HELP weir_aggregator_limit_fullest_ratio The most that a counter of the limit in use held in the last minute, of its amount, as it turned out once late reports were in: above 1 is over-admission.
# TYPE weir_aggregator_limit_fullest_ratio gauge
weir_aggregator_limit_fullest_ratio{limit="each",partition="3",policy="shop/orders",rate="100/1s"} 0.5
# HELP weir_aggregator_limit_over_seconds_total Time for which counters held more than their amount, summed over counters.
# TYPE weir_aggregator_limit_over_seconds_total counter
weir_aggregator_limit_over_seconds_total{limit="each",partition="3",policy="shop/orders",rate="100/1s"} 3.5
# HELP weir_aggregator_limit_over_units_total Units admitted beyond counters' amounts.
# TYPE weir_aggregator_limit_over_units_total counter
weir_aggregator_limit_over_units_total{limit="each",partition="3",policy="shop/orders",rate="100/1s"} 9
`
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want), "weir_aggregator_limit_fullest_ratio",
		"weir_aggregator_limit_over_seconds_total", "weir_aggregator_limit_over_units_total"); err != nil {
		t.Error(err)
	}
	m.Released(3)
	if n, err := testutil.GatherAndCount(reg, "weir_aggregator_limit_over_units_total"); n != 0 || err != nil {
		t.Errorf("%d series of a partition that was given up, %v", n, err)
	}
}

func TestInclusionIsOneHistogramOfAllPartitions(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	m := New(reg)
	var a, b partition.Lags
	a.Counts[2], a.Sum = 3, 50*time.Millisecond
	b.Counts[len(b.Counts)-1], b.Sum = 1, 7*time.Second
	m.Observe(3, partition.Stats{Messages: 1, Included: a}, partition.Gauges{})
	m.Observe(3, partition.Stats{Messages: 2, Included: a}, partition.Gauges{})
	m.Observe(4, partition.Stats{Messages: 1, Included: b}, partition.Gauges{})
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != "weir_aggregator_inclusion_seconds" {
			continue
		}
		h := f.GetMetric()[0].GetHistogram()
		if h.GetSampleCount() != 4 || h.GetSampleSum() != 7.05 || len(h.GetBucket()) != len(partition.LagBounds()) ||
			h.GetBucket()[1].GetCumulativeCount() != 0 || h.GetBucket()[2].GetCumulativeCount() != 3 || h.GetBucket()[12].GetCumulativeCount() != 3 {
			t.Errorf("the histogram is %v", h)
		}
		return
	}
	t.Error("there is no histogram")
}
