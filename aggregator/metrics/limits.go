package metrics

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirproxy/weir/aggregator/partition"
)

// limits are what was seen of limits, by partition. Metrics.mu guards them.
type limits struct {
	fullest        *prometheus.GaugeVec
	units, seconds *prometheus.CounterVec
	last           map[int32]map[limitKey]partition.Seen
}

type limitKey struct{ policy, limit, rate string }

func newLimits(reg prometheus.Registerer) limits {
	labels := []string{"partition", "policy", "limit", "rate"}
	counter := func(name, help string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}, labels)
	}
	l := limits{
		fullest: prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: namespace, Name: "limit_fullest_ratio",
			Help: "The most that a counter of the limit in use held in the last minute, of its amount, as it turned out once late reports were in: above 1 is over-admission."}, labels),
		units:   counter("limit_over_units_total", "Units admitted beyond counters' amounts."),
		seconds: counter("limit_over_seconds_total", "Time for which counters held more than their amount, summed over counters."),
		last:    map[int32]map[limitKey]partition.Seen{},
	}
	reg.MustRegister(l.fullest, l.units, l.seconds)
	return l
}

// Limits takes what was seen of the limits that a partition has now; others' series end.
func (m *Metrics) Limits(p int32, seen []partition.Seen) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.limits.observe(p, seen)
}

func (l *limits) observe(p int32, seen []partition.Seen) {
	part := strconv.Itoa(int(p))
	last, now := l.last[p], make(map[limitKey]partition.Seen, len(seen))
	for _, s := range seen {
		k := limitKey{s.Policy, s.Limit, s.Rate}
		before := last[k]
		if s.OverSeconds < before.OverSeconds || s.OverUnits < before.OverUnits { // claimed or met anew
			before = partition.Seen{}
		}
		l.fullest.WithLabelValues(part, k.policy, k.limit, k.rate).Set(s.Fullest)
		l.units.WithLabelValues(part, k.policy, k.limit, k.rate).Add(s.OverUnits - before.OverUnits)
		l.seconds.WithLabelValues(part, k.policy, k.limit, k.rate).Add(s.OverSeconds - before.OverSeconds)
		now[k] = s
		delete(last, k)
	}
	for k := range last {
		l.fullest.DeleteLabelValues(part, k.policy, k.limit, k.rate)
		l.units.DeleteLabelValues(part, k.policy, k.limit, k.rate)
		l.seconds.DeleteLabelValues(part, k.policy, k.limit, k.rate)
	}
	if len(now) == 0 {
		delete(l.last, p)
		return
	}
	l.last[p] = now
}
