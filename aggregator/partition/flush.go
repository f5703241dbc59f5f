package partition

import (
	"errors"
	"time"

	"github.com/weirproxy/weir/aggregator/store"
	"github.com/weirproxy/weir/internal/quota"
)

// sink is what is known of the store.
type sink struct {
	dirty    []*counter // to be written, those changed first in front
	flying   []flown
	inFlight bool
	flight   store.Flush // the flush in flight; its slices are used again for the next
	fields   []store.Field

	sequence, known uint64
	rewrite         bool // all that live is being rewritten
	started         bool // the rewrite's first flush is written: a loss can be told again
	failures        int
	final           bool       // the flush in flight is the handover's
	handedOver      bool       // it was written, with all that was dirty
	unreadable      bool       // the newest load failed
	next            quota.Time // no flush before
	stored          int64
	storedAppended  quota.Millis
	storedAt        quota.Time
}

// flown is a counter in flight, with the first change that the flush carries.
type flown struct {
	c        *counter
	from     int64
	appended quota.Millis
}

// markDirty notes that the store lacks what came with offset.
func (p *Partition) markDirty(c *counter, offset int64, appended quota.Millis) {
	if c.dirty {
		return
	}
	c.dirty, c.dirtyFrom, c.dirtyAppended = true, offset, appended
	p.sink.dirty = append(p.sink.dirty, c)
}

// NextFlush is when Flush should be called.
func (p *Partition) NextFlush() quota.Time { return p.sink.next }

// Flush returns the next flush, or nil where there is none to do: one is in flight, none is due, or
// nothing changed. Its outcome is due by Flushed, and it is valid until then. final ignores the period, and marks the partition
// as handed over if all is in it.
func (p *Partition) Flush(now quota.Time, final bool) *store.Flush {
	s := &p.sink
	if s.inFlight || p.stopped != nil || now < s.next && (!final || s.failures > 0) {
		return nil
	}
	s.next = now + quota.Time(p.cfg.StoreFlush)
	if len(s.dirty) == 0 && !s.rewrite && !final && !p.recordDue(now) {
		return nil
	}
	s.sequence++
	f := store.Flush{
		Owner: p.cfg.Owner, Sequence: s.sequence, Known: s.known, Rewrite: s.rewrite && !s.started,
		// A replay is behind what an earlier owner stored; owner time never goes back.
		OwnerTime: max(int64(p.clock.now(now)), p.start.OwnerTime), Counters: p.take(now),
	}
	offset, appended := p.safeOffset()
	f.Offset, f.Appended = offset, int64(appended)
	f.Clean = final && offset == p.watermark
	s.inFlight, s.final = true, final
	s.flight = f
	return &s.flight
}

// recordDue: reports came that changed no counter; or nothing came for so long that the store may have lost what it
// had without anybody knowing.
func (p *Partition) recordDue(now quota.Time) bool {
	offset, _ := p.safeOffset()
	since := time.Duration(now - max(p.sink.storedAt, p.liveSince))
	return offset > p.sink.stored && time.Duration(now-p.sink.storedAt) >= emptyFlush || p.live && since >= quietFlush
}

// take moves up to a batch of dirty counters into the flush.
func (p *Partition) take(now quota.Time) []store.Counter {
	s := &p.sink
	n := min(len(s.dirty), p.cfg.flushBatch)
	out := s.flight.Counters[:0]
	s.fields = s.fields[:0]
	s.flying = s.flying[:0]
	for _, c := range s.dirty[:n] {
		if c.dirty = false; c.total == nil { // unlimited by now
			continue
		}
		c.flying = true
		s.flying = append(s.flying, flown{c, c.dirtyFrom, c.dirtyAppended})
		out = append(out, p.export(c, now))
	}
	s.dirty = append(s.dirty[:0], s.dirty[n:]...)
	return out
}

func (p *Partition) export(c *counter, now quota.Time) store.Counter {
	keep := c.total.Keep()
	if c.written == 0 || time.Duration(now-c.written) > keep-keepTotals/2 {
		c.whole = true // the store may have dropped it
	}
	through := p.watermark
	if len(c.waiting) > 0 { // its policy went and more came since: that is not in the values
		through = min(through, c.waiting[0].first-1)
	}
	w := store.Counter{ID: c.id, Through: max(through, c.countAfter), TTL: keep, Whole: c.whole}
	s, from := &p.sink, len(p.sink.fields)
	if c.whole {
		w.Identity, s.fields = c.identity, c.total.ExportAll(s.fields)
	} else {
		s.fields = c.total.Export(s.fields)
	}
	w.Fields = s.fields[from:len(s.fields):len(s.fields)]
	c.whole, c.written = false, now
	return w
}

// safeOffset is the highest offset that the store will have in full once the flush being built is
// written: below all that waits, and below the first change of what is still to be written.
func (p *Partition) safeOffset() (int64, quota.Millis) {
	offset, appended := p.watermark, p.appended
	if w, a, ok := p.oldestWaiting(); ok && w-1 < offset {
		offset, appended = w-1, a
	}
	if len(p.sink.dirty) > 0 {
		if c := p.sink.dirty[0]; c.dirtyFrom-1 < offset {
			offset, appended = c.dirtyFrom-1, c.dirtyAppended
		}
	}
	if offset < p.sink.stored { // what a replay reads again is stored already
		return p.sink.stored, p.sink.storedAppended
	}
	return offset, appended
}

// HandedOver reports that a final flush has written all that there was, and no batch is in flight.
func (p *Partition) HandedOver() bool {
	return p.sink.handedOver && !p.sink.inFlight && !p.out.inFlight
}

// Flushed takes the outcome of the flush in flight.
func (p *Partition) Flushed(err error, now quota.Time) {
	s := &p.sink
	s.inFlight = false
	for _, f := range s.flying {
		f.c.flying = false
	}
	switch {
	case err == nil:
		p.flushDone(now)
	case errors.Is(err, store.ErrFenced):
		p.stopped = err
	case errors.Is(err, store.ErrLost):
		p.stats.Losses++
		p.rewriteAll()
	default:
		p.flushFailed(now)
	}
}

func (p *Partition) flushDone(now quota.Time) {
	s := &p.sink
	p.stats.Flushes++
	p.stats.FlushedCounters += uint64(len(s.flying))
	s.handedOver = s.final && len(s.dirty) == 0
	s.flying = s.flying[:0]
	s.failures, s.started = 0, true
	s.known = s.flight.Sequence
	s.stored, s.storedAppended, s.storedAt = s.flight.Offset, quota.Millis(s.flight.Appended), now
	if s.rewrite && len(s.dirty) == 0 {
		s.rewrite = false
	}
}

// flushFailed puts what was in flight back in front, whole, since parts may or may not be written.
func (p *Partition) flushFailed(now quota.Time) {
	s := &p.sink
	p.stats.FlushErrors++
	s.failures++
	pause := min(p.cfg.StoreFlush<<min(s.failures, 5), 2*time.Second)
	s.next = now + quota.Time(pause)
	var dirty []*counter
	flew := make(map[*counter]bool, len(s.flying))
	for _, f := range s.flying {
		flew[f.c] = true
		f.c.dirty, f.c.whole, f.c.dirtyFrom, f.c.dirtyAppended = true, true, f.from, f.appended
		dirty = append(dirty, f.c)
	}
	for _, c := range s.dirty {
		if !flew[c] {
			dirty = append(dirty, c)
		}
	}
	s.dirty, s.flying = dirty, s.flying[:0]
}

// rewriteAll makes the store whole again from what lives here. Until that is done the record says
// that nothing is stored.
func (p *Partition) rewriteAll() {
	s := &p.sink
	s.rewrite, s.started, s.stored, s.storedAppended, s.flying = true, false, -1, 0, nil
	s.dirty = s.dirty[:0]
	for _, c := range p.all {
		if c.total == nil {
			c.dirty = false
			continue
		}
		c.dirty, c.whole, c.dirtyFrom, c.dirtyAppended = true, true, 0, 0
		s.dirty = append(s.dirty, c)
	}
}
