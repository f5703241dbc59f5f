package controller

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/weirproxy/weir/internal/log"
)

// What parts wait for, as log lines, readiness and the metric name them.
const (
	waitsKubernetes = "kubernetes"
	waitsKafka      = "kafka"
	waitsPolicies   = "policies"
	waitsStatus     = "status"
)

// waits are the reasons why parts wait: each in readiness, one log line a change, and a metric. It is safe
// for concurrent use.
type waits struct {
	log     *zap.Logger
	waiting *prometheus.GaugeVec

	mu      sync.Mutex
	reasons map[string]string
}

func newWaits(logger *zap.Logger, r prometheus.Registerer) *waits {
	w := &waits{log: logger, reasons: map[string]string{}, waiting: prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Namespace: "weir_controller", Name: "waiting",
		Help: "1 while a part waits for something that is away; /readyz says for what.",
	}, []string{"part"})}
	for _, part := range []string{waitsKubernetes, waitsKafka, waitsPolicies, waitsStatus} {
		w.waiting.WithLabelValues(part)
	}
	r.MustRegister(w.waiting)
	return w
}

// set notes what a part waits for, "" is nothing, and logs a change.
func (w *waits) set(part, reason string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.reasons[part] == reason {
		return
	}
	w.reasons[part] = reason
	if reason == "" {
		w.waiting.WithLabelValues(part).Set(0)
		w.log.Info("waits no more", zap.String(log.Waiting, part))
		return
	}
	w.waiting.WithLabelValues(part).Set(1)
	w.log.Info("waits", zap.String(log.Waiting, part), zap.String(log.Reason, reason))
}

// list is what is waited for now, in the order of the parts.
func (w *waits) list() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []string
	for _, part := range slices.Sorted(maps.Keys(w.reasons)) {
		if w.reasons[part] != "" {
			out = append(out, fmt.Sprintf("%s: %s", part, w.reasons[part]))
		}
	}
	return out
}
