package webhook

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// What became of a review, in the metric and in kube-apiserver's audit log.
const (
	outcomeInjected  = "injected"  // a patch puts the sidecar in, or makes it as it is to be
	outcomeUnchanged = "unchanged" // it was injected before, as it is to be
	outcomeSkipped   = "skipped"   // no label asks for it, or there is no sidecar for such a pod
	outcomeRefused   = "refused"   // an annotation that its author got wrong
	outcomeFailed    = "failed"    // admitted without a sidecar, though one was asked for
	outcomeBad       = "bad_review"
)

// Metrics are the webhook's. Their only label is the outcome.
type Metrics struct {
	reviews *prometheus.CounterVec
	seconds prometheus.Histogram
}

// NewMetrics registers the webhook's metrics.
func NewMetrics(r prometheus.Registerer) *Metrics {
	m := &Metrics{
		reviews: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "weir_controller", Subsystem: "injection", Name: "reviews_total",
			Help: "Pods that kube-apiserver asked about, by what became of them; failed: admitted without the sidecar that was asked for.",
		}, []string{"outcome"}),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: "weir_controller", Subsystem: "injection", Name: "seconds",
			Help:    "Time that a pod's review took, from the request's header to the answer.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5},
		}),
	}
	for _, outcome := range []string{outcomeInjected, outcomeUnchanged, outcomeSkipped, outcomeRefused, outcomeFailed, outcomeBad} {
		m.reviews.WithLabelValues(outcome)
	}
	r.MustRegister(m.reviews, m.seconds)
	return m
}

func (m *Metrics) reviewed(outcome string, took time.Duration) {
	m.reviews.WithLabelValues(outcome).Inc()
	m.seconds.Observe(took.Seconds())
}
