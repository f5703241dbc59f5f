package metrics

import "github.com/prometheus/client_golang/prometheus"

// factory makes and registers.
type factory struct{ reg prometheus.Registerer }

func register[C prometheus.Collector](f factory, c C) C {
	f.reg.MustRegister(c)
	return c
}

func (f factory) counter(name, help string) prometheus.Counter {
	return register(f, prometheus.NewCounter(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}))
}

func (f factory) counters(name, help string, labels ...string) *prometheus.CounterVec {
	return register(f, prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}, labels))
}

func (f factory) gauges(name, help string, labels ...string) *prometheus.GaugeVec {
	return register(f, prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: namespace, Name: name, Help: help}, labels))
}

func (f factory) gauge(name, help string, value func() float64) {
	register(f, prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: namespace, Name: name, Help: help}, value))
}

func (f factory) counterOf(name, help string, value func() float64) {
	register(f, prometheus.NewCounterFunc(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}, value))
}

func (f factory) histogram(name, help string) prometheus.Histogram {
	return register(f, prometheus.NewHistogram(prometheus.HistogramOpts{
		Namespace: namespace, Name: name, Help: help,
		Buckets: prometheus.ExponentialBuckets(250e-9, 2, 16), // 250 ns to 8 ms
	}))
}

// histograms are of what crosses the network: 5 ms to 5 s.
func (f factory) histograms(name, help string, labels ...string) *prometheus.HistogramVec {
	return register(f, prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Namespace: namespace, Name: name, Help: help,
		Buckets: []float64{.005, .01, .02, .03, .05, .075, .1, .15, .25, .5, 1, 2.5, 5},
	}, labels))
}

func (f factory) sources(s Sources) {
	if s.Slots != nil {
		f.gauge("slots", "Counters held.", func() float64 { n, _, _ := s.Slots(); return float64(n) })
		f.gauge("slots_capacity", "Most counters held; beyond it new ones share their limit's overflow counter.",
			func() float64 { _, n, _ := s.Slots(); return float64(n) })
		f.gauge("identity_bytes", "Bytes of the identities of counters held.", func() float64 { _, _, n := s.Slots(); return float64(n) })
	}
	if s.Overflowed != nil {
		f.counterOf("slots_full_total", "New counters that found no room.", func() float64 { return float64(s.Overflowed()) })
	}
	if s.Known != nil {
		f.gauge("known_records", "Records of hot and blocked counters remembered.", func() float64 { n, _ := s.Known(); return float64(n) })
		f.counterOf("known_dropped_total", "Records not remembered for want of room.", func() float64 { _, n := s.Known(); return float64(n) })
	}
	if s.Ready != nil {
		f.gauge("ready", "1 if the sidecar is ready.", func() float64 { return one(s.Ready()) })
	}
	if s.Degraded != nil {
		f.gauge("degraded", "1 if the sidecar is degraded; weir_sidecar_degraded_reason says why.", func() float64 { return one(s.Degraded()) })
	}
}

func one(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
