// Package waits keeps the reasons why a program's parts wait for something that is away: each is in readiness, in
// one log line a change, and in a metric.
package waits

import (
	"maps"
	"slices"
	"sync"

	"go.uber.org/zap"

	"github.com/weirproxy/weir/internal/log"
)

// Waits are the reasons. It is safe for concurrent use.
type Waits struct {
	log  *zap.Logger
	tell func(part string, waits bool)

	mu      sync.Mutex
	reasons map[string]string
}

// New returns one without reasons. tell is called for each change of a part, for the metric; it must not call back.
func New(logger *zap.Logger, tell func(part string, waits bool)) *Waits {
	return &Waits{log: logger, tell: tell, reasons: map[string]string{}}
}

// Set notes what a part waits for, "" is nothing, and logs a change.
func (w *Waits) Set(part, reason string) {
	switch {
	case !w.Note(part, reason):
	case reason == "":
		w.log.Info("waits no more", zap.String(log.Waiting, part))
	default:
		w.log.Info("waits", zap.String(log.Waiting, part), zap.String(log.Reason, reason))
	}
}

// Note is Set without the log line, for what logs by itself. It reports whether something changed.
func (w *Waits) Note(part, reason string) bool {
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
	w.tell(part, reason != "")
	return true
}

// List is what is waited for now, "part: reason", sorted by parts.
func (w *Waits) List() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := make([]string, 0, len(w.reasons))
	for _, part := range slices.Sorted(maps.Keys(w.reasons)) {
		out = append(out, part+": "+w.reasons[part])
	}
	return out
}
