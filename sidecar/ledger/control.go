package ledger

import wirev1 "github.com/weirproxy/weir/api/wire/v1"

// MarkDirty notes that a check charged the slot, so that the control goroutine reports it. The
// caller holds a Pin. It does not allocate; a slot already marked costs one load.
func (l *Ledger) MarkDirty(s *Slot) {
	if s.marked.Load() || !s.marked.CompareAndSwap(false, true) {
		return
	}
	for {
		head := l.dirty.Load()
		s.next = head
		if l.dirty.CompareAndSwap(head, s) {
			if head == nil {
				signal(l.wake)
			}
			return
		}
	}
}

// MarkUrgent notes that a marked slot has far more demand than its owner knows. It never waits.
func (l *Ledger) MarkUrgent() {
	if len(l.urgent) == 0 {
		signal(l.urgent)
	}
}

func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Wake receives when there is a marked slot after there was none. Its buffer holds one.
func (l *Ledger) Wake() <-chan struct{} { return l.wake }

// Urgent receives after MarkUrgent. Its buffer holds one.
func (l *Ledger) Urgent() <-chan struct{} { return l.urgent }

// TakeDirty calls f for each slot marked since the last call. A mark is cleared before f runs, so
// that a charge which f does not see marks the slot again.
func (l *Ledger) TakeDirty(f func(*Slot)) {
	for s := l.dirty.Swap(nil); s != nil; {
		next := s.next
		s.next = nil
		s.marked.Store(false)
		f(s)
		s = next
	}
}

// TakeMade calls f for each slot made since the last call, and counts it as live.
func (l *Ledger) TakeMade(f func(*Slot)) {
	l.alloc.mu.Lock()
	made := l.alloc.fresh
	l.alloc.fresh = nil
	l.alloc.mu.Unlock()
	for _, s := range made {
		l.live = append(l.live, s)
		s.live = uint32(len(l.live)) //nolint:gosec // bounded by Config.Slots
		f(s)
	}
}

// Live returns the slots that TakeMade has seen and Remove has not. The ledger owns the slice: it is
// valid until the next call of any of its control methods.
func (l *Ledger) Live() []*Slot { return l.live }

// Find returns the live slot of a counter, or nil.
func (l *Ledger) Find(id wirev1.ID) *Slot {
	if s := l.table.lookup(id); s != nil && s.live > 0 {
		return s
	}
	return nil
}

// Remove takes a live slot out of the table. A check that found it before may still charge it: it
// stays reported until Reclaim frees it.
func (l *Ledger) Remove(s *Slot) {
	if s.live == 0 || s.removed {
		return
	}
	l.table.remove(s)
	last := l.live[len(l.live)-1]
	l.live[s.live-1] = last
	last.live = s.live
	l.live[len(l.live)-1] = nil
	l.live = l.live[:len(l.live)-1]
	s.live, s.removed = 0, true
	l.limbo = append(l.limbo, s)
}

// Reclaim frees removed slots that no check holds any more and that are clean; it never waits. Call
// it at each flush. It returns how many were freed.
func (l *Ledger) Reclaim(clean func(*Slot) bool) int {
	if len(l.waiting) > 0 && l.pins.drained() {
		l.graced = append(l.graced, l.waiting...)
		clear(l.waiting)
		l.waiting = l.waiting[:0]
	}
	if len(l.waiting) == 0 && len(l.limbo) > 0 {
		l.waiting, l.limbo = l.limbo, l.waiting
		l.pins.flip()
	}
	return l.free(clean)
}

func (l *Ledger) free(clean func(*Slot) bool) int {
	kept := l.graced[:0]
	freed := 0
	for _, s := range l.graced {
		if s.marked.Load() || !clean(s) {
			kept = append(kept, s)
			continue
		}
		l.alloc.release(s)
		// Reports that await a watermark may hold the slot for long yet: not with all it had.
		s.freed, s.Counter, s.tail = true, nil, ""
		freed++
	}
	clear(l.graced[len(kept):])
	l.graced = kept
	return freed
}

// Removing is how many removed slots are not yet free.
func (l *Ledger) Removing() int { return len(l.limbo) + len(l.waiting) + len(l.graced) }
