// Package metrics owns the name of every metric that the aggregator exports. The only labels are the
// partition, reasons that the program bounds, and the limits that policies in force name: never a key, a client or a pod.
package metrics

import (
	"strconv"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirproxy/weir/aggregator/partition"
)

const namespace = "weir_aggregator"

// Metrics are the aggregator's. It is safe for concurrent use, and an ingest.Observer.
type Metrics struct {
	PoliciesRefused prometheus.Counter
	Tombstones      prometheus.Counter

	counts  map[string]*prometheus.CounterVec
	skipped *prometheus.CounterVec
	gaps    *prometheus.CounterVec
	waiting *prometheus.GaugeVec
	gauges  map[string]*prometheus.GaugeVec
	limits  limits

	mu       sync.Mutex
	last     map[int32]partition.Stats
	included partition.Lags
}

// count is a counter made from one number of partition.Stats.
type count struct {
	name, help string
	value      func(*partition.Stats) float64
}

func u(f func(*partition.Stats) uint64) func(*partition.Stats) float64 {
	return func(s *partition.Stats) float64 { return float64(f(s)) }
}

var counts = []count{
	{"usage_messages_total", "Records read from the usage topic.", u(func(s *partition.Stats) uint64 { return s.Messages })},
	{"usage_entries_total", "Counter entries in reports.", u(func(s *partition.Stats) uint64 { return s.Entries })},
	{"usage_units_total", "Units counted.", func(s *partition.Stats) float64 { return s.Units }},
	{"usage_stale_log_total", "Reports that name an older log of usage; they count.", u(func(s *partition.Stats) uint64 { return s.StaleLogID })},
	{"usage_folded_total", "Entries charged to an overflow counter, their target being full.", u(func(s *partition.Stats) uint64 { return s.Folded })},
	{"time_jumps_total", "Append times too far ahead of monotonic time, capped.", u(func(s *partition.Stats) uint64 { return s.Jumps })},
	{"batches_total", "Decision batches sent.", u(func(s *partition.Stats) uint64 { return s.Batches })},
	{"records_total", "Decision records sent.", u(func(s *partition.Stats) uint64 { return s.Records })},
	{"batches_deferred_total", "Batches whose budget did not reach for all records.", u(func(s *partition.Stats) uint64 { return s.DeferredBatches })},
	{"store_flushes_total", "Flushes written to the store.", u(func(s *partition.Stats) uint64 { return s.Flushes })},
	{"store_flushed_counters_total", "Counters written to the store.", u(func(s *partition.Stats) uint64 { return s.FlushedCounters })},
	{"store_errors_total", "Flushes that failed; what they held is written again.", u(func(s *partition.Stats) uint64 { return s.FlushErrors })},
	{"store_losses_total", "Times that the store had lost what it had confirmed; it is rewritten.", u(func(s *partition.Stats) uint64 { return s.Losses })},
	{"store_loads_total", "Counters asked of the store.", u(func(s *partition.Stats) uint64 { return s.Loads })},
}

var reasons = []count{
	{"fingerprint", "", u(func(s *partition.Stats) uint64 { return s.Fingerprint })},
	{"malformed", "", u(func(s *partition.Stats) uint64 { return s.Malformed })},
	{"foreign_target", "", u(func(s *partition.Stats) uint64 { return s.Foreign })},
	{"implausible", "", u(func(s *partition.Stats) uint64 { return s.Implausible })},
	{"unknown_policy", "", u(func(s *partition.Stats) uint64 { return s.UnknownPolicy })},
	{"no_identity", "", u(func(s *partition.Stats) uint64 { return s.NoIdentity })},
	{"too_many_pods", "", u(func(s *partition.Stats) uint64 { return s.TooManyPods })},
	{"no_room", "", u(func(s *partition.Stats) uint64 { return s.NoRoom })},
}

// gauge is one number of partition.Gauges.
type gauge struct {
	name, help string
	value      func(*partition.Gauges) float64
}

func n(f func(*partition.Gauges) int) func(*partition.Gauges) float64 {
	return func(g *partition.Gauges) float64 { return float64(f(g)) }
}

var gauges = []gauge{
	{"live", "1 where this process decides the partition.", func(g *partition.Gauges) float64 { return one(g.Live) }},
	{"store_away", "1 while the store does not take flushes.", func(g *partition.Gauges) float64 { return one(g.StoreAway) }},
	{"watermark", "Highest usage offset included.", func(g *partition.Gauges) float64 { return float64(g.Watermark) }},
	{"stored_offset", "Usage offset up to which the store has all.", func(g *partition.Gauges) float64 { return float64(g.Stored) }},
	{"counters", "Counters held.", n(func(g *partition.Gauges) int { return g.Counters })},
	{"counters_hot", "Counters that are decided each tick.", n(func(g *partition.Gauges) int { return g.Hot })},
	{"counters_dirty", "Counters to be written to the store.", n(func(g *partition.Gauges) int { return g.Dirty })},
	{"entries_waiting", "Entries that wait for a counter's state, text or policy.", n(func(g *partition.Gauges) int { return g.Waiting })},
	{"targets", "Targets known.", n(func(g *partition.Gauges) int { return g.Targets })},
	{"targets_overflowing", "Targets whose table of counters is full.", n(func(g *partition.Gauges) int { return g.Overflowing })},
	{"pods", "Incarnations of pods that report.", n(func(g *partition.Gauges) int { return g.Pods })},
}

func one(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// New makes the metrics and registers them.
func New(reg prometheus.Registerer) *Metrics {
	m := &Metrics{
		counts: map[string]*prometheus.CounterVec{}, gauges: map[string]*prometheus.GaugeVec{},
		last: map[int32]partition.Stats{},
	}
	vec := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}, labels)
		reg.MustRegister(c)
		return c
	}
	for _, c := range counts {
		m.counts[c.name] = vec(c.name, c.help, "partition")
	}
	m.skipped = vec("usage_skipped_total", "Entries or reports skipped, by reason; none of them stalls a partition.", "partition", "reason")
	m.gaps = vec("usage_lost_total", "Usage offsets that were gone before they were read.", "partition")
	for _, g := range gauges {
		v := prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: namespace, Name: g.name, Help: g.help}, []string{"partition"})
		reg.MustRegister(v)
		m.gauges[g.name] = v
	}
	m.waiting = prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: namespace, Name: "waiting",
		Help: "1 while this process waits for what the reason names; /readyz says it in words."}, []string{"reason"})
	m.PoliciesRefused = prometheus.NewCounter(prometheus.CounterOpts{Namespace: namespace, Name: "policies_refused_total", Help: "Versions of policies that were not taken into force."})
	m.Tombstones = prometheus.NewCounter(prometheus.CounterOpts{Namespace: namespace, Name: "status_tombstones_total", Help: "Pods let go after an hour of silence."})
	m.limits = newLimits(reg)
	reg.MustRegister(m.waiting, m.PoliciesRefused, m.Tombstones, newInclusion(m))
	return m
}

// Waiting sets whether the process waits for a part; parts are bounded by the program.
func (m *Metrics) Waiting(part string, is bool) { m.waiting.WithLabelValues(part).Set(one(is)) }

// Observe takes a partition's counts since its claim, and how it is.
func (m *Metrics) Observe(p int32, s partition.Stats, g partition.Gauges) {
	label := strconv.Itoa(int(p))
	m.mu.Lock()
	defer m.mu.Unlock()
	before := m.last[p]
	if s.Messages < before.Messages { // claimed anew
		before = partition.Stats{}
	}
	for _, c := range counts {
		m.counts[c.name].WithLabelValues(label).Add(max(c.value(&s)-c.value(&before), 0))
	}
	for _, r := range reasons {
		m.skipped.WithLabelValues(label, r.name).Add(max(r.value(&s)-r.value(&before), 0))
	}
	for i := range s.Included.Counts {
		m.included.Counts[i] += s.Included.Counts[i] - before.Included.Counts[i]
	}
	m.included.Sum += s.Included.Sum - before.Included.Sum
	m.last[p] = s
	for _, x := range gauges {
		m.gauges[x.name].WithLabelValues(label).Set(x.value(&g))
	}
}

// Released forgets a partition that was given up.
func (m *Metrics) Released(p int32) {
	label := strconv.Itoa(int(p))
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.last, p)
	for _, v := range m.gauges {
		v.DeleteLabelValues(label)
	}
	m.limits.observe(p, nil)
}

// Gap counts usage that was gone before it was read.
func (m *Metrics) Gap(p int32, from, to int64) {
	if to > from {
		m.gaps.WithLabelValues(strconv.Itoa(int(p))).Add(float64(to - from))
	}
}
