package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirproxy/weir/aggregator/partition"
)

// inclusion exports partition.Lags of all partitions as one histogram.
type inclusion struct {
	m    *Metrics
	desc *prometheus.Desc
}

func newInclusion(m *Metrics) inclusion {
	return inclusion{m, prometheus.NewDesc(namespace+"_inclusion_seconds",
		"Of headers that include new reports: time from the append of the oldest of them until the header was made, owner time.", nil, nil)}
}

// Describe implements prometheus.Collector.
func (i inclusion) Describe(to chan<- *prometheus.Desc) { to <- i.desc }

// Collect implements prometheus.Collector.
func (i inclusion) Collect(to chan<- prometheus.Metric) {
	i.m.mu.Lock()
	lags := i.m.included
	i.m.mu.Unlock()
	buckets, count := map[float64]uint64{}, uint64(0)
	for n, bound := range partition.LagBounds() {
		count += lags.Counts[n]
		buckets[bound.Seconds()] = count
	}
	count += lags.Counts[len(lags.Counts)-1]
	to <- prometheus.MustNewConstHistogram(i.desc, count, lags.Sum.Seconds(), buckets)
}
