package ingest

import (
	"context"
	"time"

	"go.uber.org/zap"
)

// handOver flushes what is left, sends a last header and marks the partition clean, before ctx ends. What
// was read ahead and not taken is the next owner's to read.
func (l *loop) handOver(ctx context.Context) {
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	sent := false
	for l.p.Stopped() == nil && (!l.p.HandedOver() || !sent && l.p.Live()) {
		l.flush(true)
		if !sent {
			if b := l.p.Last(l.now()); b != nil {
				l.send(b)
				sent = true
			}
		}
		select {
		case f := <-l.results:
			f()
		case <-again.C:
		case <-ctx.Done():
			l.log.Warn("handover not finished in time; the next owner replays", zap.Int("dirty", l.p.Gauges(l.now()).Dirty))
			return
		}
	}
}
