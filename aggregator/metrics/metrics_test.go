package metrics

import (
	"strings"
	"testing"

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
	New(reg).Observe(3, partition.Stats{Messages: 1}, partition.Gauges{})
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, x := range f.Metric {
			for _, l := range x.Label {
				if n := l.GetName(); n != "partition" && n != "reason" {
					t.Errorf("%s has the label %s", f.GetName(), n)
				}
			}
		}
	}
	if problems, err := testutil.GatherAndLint(reg); err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
}
