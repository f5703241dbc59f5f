package aggregator

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"go.uber.org/zap"

	"github.com/weirproxy/weir/aggregator/ingest"
	"github.com/weirproxy/weir/internal/log"
)

// waits are the reasons why parts wait: each in readiness, one log line a change, and a metric. It is safe
// for concurrent use.
type waits struct {
	log     *zap.Logger
	waiting func(part string, is bool) // tells the metric

	mu      sync.Mutex
	reasons map[string]string
}

// set notes what a part waits for, "" is nothing, and logs it.
func (w *waits) set(part, reason string) {
	if !w.note(part, reason) {
		return
	}
	if reason == "" {
		w.log.Info("waits no more", zap.String(log.Waiting, part))
	} else {
		w.log.Info("waits", zap.String(log.Waiting, part), zap.String(log.Reason, reason))
	}
}

// note is set without the log line, for what logs by itself. It reports whether something changed.
func (w *waits) note(part, reason string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.reasons[part] == reason {
		return false
	}
	if reason == "" {
		delete(w.reasons, part)
	} else {
		w.reasons[part] = reason
	}
	w.waiting(part, reason != "")
	return true
}

func (w *waits) list() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := make([]string, 0, len(w.reasons))
	for _, part := range slices.Sorted(maps.Keys(w.reasons)) {
		out = append(out, part+": "+w.reasons[part])
	}
	return out
}

// readiness: ready is a member of the group with nothing to wait for. Partitions that are being taken over
// and policies that were refused are named, but do not make it unready.
func (a *Aggregator) readiness() (bool, []string) {
	c := a.core.get()
	reasons := a.waits.list()
	if c == nil {
		return false, append(reasons, "kafka: not connected yet")
	}
	select {
	case <-c.policies.Ready():
	default:
		reasons = append(reasons, "policies: not read to their end yet")
	}
	ready := len(reasons) == 0
	for _, h := range c.owner.Holdings() {
		if h.State != ingest.Live {
			reasons = append(reasons, fmt.Sprintf("partition %d: %s", h.Partition, h.State))
		} else if h.Gauges.StoreAway {
			reasons = append(reasons, fmt.Sprintf("partition %d: the store is away, going on from memory", h.Partition))
		}
	}
	if c.files != nil {
		if problem := c.files.Problem(); problem != "" {
			reasons = append(reasons, "policy files: the last good versions stay in force: "+problem)
		}
	}
	for _, p := range c.policies.Problems() {
		reasons = append(reasons, fmt.Sprintf("policy %s: version %d is refused: %v", p.Key, p.Version, p.Err))
	}
	for _, x := range c.policies.Current().Conflicts() {
		reasons = append(reasons, fmt.Sprintf("policy %s: %s is in force, %v ignored", x.Name, x.InForce, x.Ignored))
	}
	return ready, reasons
}
