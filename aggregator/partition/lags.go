package partition

import (
	"time"

	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/internal/quota"
)

// lagBounds are the upper bounds of Lags, ms.
var lagBounds = [...]quota.Millis{5, 10, 20, 30, 50, 75, 100, 150, 250, 500, 1000, 2500, 5000}

// Lags counts durations by size. The zero value has counted none.
type Lags struct {
	// Counts are of those within each of LagBounds and above the one before, the last of those above all.
	Counts [len(lagBounds) + 1]uint64
	// Sum of all.
	Sum time.Duration
}

// LagBounds are the upper bounds of all Counts but the last, ascending.
func LagBounds() []time.Duration {
	out := make([]time.Duration, len(lagBounds))
	for i, b := range lagBounds {
		out[i] = time.Duration(b) * time.Millisecond
	}
	return out
}

func (l *Lags) note(ms quota.Millis) {
	i := 0
	for i < len(lagBounds) && ms > lagBounds[i] {
		i++
	}
	l.Counts[i]++
	l.Sum += time.Duration(ms) * time.Millisecond
}

// said notes how late a header says that the reports since the last one are included. One that is deferred does not.
func (p *Partition) said(h *wirev1.Header) {
	if p.unsaid == 0 || h.Deferred {
		return
	}
	p.stats.Included.note(max(quota.Millis(h.OwnerTimeMs)-p.unsaid, 0))
	p.unsaid = 0
}
