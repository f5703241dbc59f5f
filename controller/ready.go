package controller

import (
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/weirproxy/weir/internal/waits"
)

// What parts wait for, as log lines, readiness and the metric name them.
const (
	waitsKubernetes = "kubernetes"
	waitsKafka      = "kafka"
	waitsPolicies   = "policies"
	waitsStatus     = "status"
)

func newWaits(logger *zap.Logger, r prometheus.Registerer) *waits.Waits {
	waiting := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Namespace: "weir_controller", Name: "waiting",
		Help: "1 while a part waits for something that is away; /readyz says for what.",
	}, []string{"part"})
	for _, part := range []string{waitsKubernetes, waitsKafka, waitsPolicies, waitsStatus} {
		waiting.WithLabelValues(part)
	}
	r.MustRegister(waiting)
	return waits.New(logger, func(part string, is bool) {
		value := 0.0
		if is {
			value = 1
		}
		waiting.WithLabelValues(part).Set(value)
	})
}
