package quota

import "time"

// SumAt is S at owner time now, which is not before the last tick or ingest, if nothing more comes. It moves
// nothing on.
func (t *Total) SumAt(now Millis) float64 {
	h := time.Duration(max(now-t.now, 0)) * time.Millisecond
	if c, ok := t.content.(*calendar); ok && c.resetIn() <= h {
		return float64(c.early)
	}
	return t.content.sum() - t.content.leaves(h)
}

// Demand is what was asked of all pods at the last tick, smoothed, units/s.
func (t *Total) Demand() float64 { return t.demand }

// Slices calls f with the units of each sub-bucket of a sliding window that holds any, oldest first, and with the
// first ms of it. The oldest of them has left the window but for a part. Other algorithms have none.
func (t *Total) Slices(f func(at Millis, n uint64)) {
	w, ok := t.content.(*window)
	if !ok {
		return
	}
	const per = 1000 * subBuckets
	for i := w.head - windowSlots + 1; i <= w.head; i++ {
		if n := w.slots[i%windowSlots]; n > 0 {
			f(Millis((i*w.micros+per-1)/per), n)
		}
	}
}
