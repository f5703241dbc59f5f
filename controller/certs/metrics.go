package certs

import "github.com/prometheus/client_golang/prometheus"

// metrics are the certificates'.
type metrics struct {
	expiry   prometheus.Gauge
	renewals prometheus.Counter
}

func newMetrics(r prometheus.Registerer) metrics {
	m := metrics{
		expiry: prometheus.NewGauge(prometheus.GaugeOpts{
			Namespace: "weir_controller", Subsystem: "webhook", Name: "certificate_expiry_timestamp_seconds",
			Help: "When the webhook's certificate ends, Unix time; 0: there is none yet.",
		}),
		renewals: prometheus.NewCounter(prometheus.CounterOpts{
			Namespace: "weir_controller", Subsystem: "webhook", Name: "certificate_renewals_total",
			Help: "Times that this replica made the webhook's certificate anew.",
		}),
	}
	r.MustRegister(m.expiry, m.renewals)
	return m
}

func (m metrics) certificate(of material) {
	m.expiry.Set(float64(of.pair.Leaf.NotAfter.Unix()))
	if of.renewed {
		m.renewals.Inc()
	}
}
