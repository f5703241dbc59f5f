package quota

import (
	"math"
	"time"
)

// content is what a counter holds at its owner, by algorithm. Time only moves on.
type content interface {
	// advance moves to owner time now; it says whether a Calendar period ended.
	advance(now Millis) (reset bool)
	// add charges n units that were admitted evenly within [from, to], none of it later than now.
	add(from, to Millis, n uint64, split Split)
	// sum is S, units.
	sum() float64
	// leaves is how much of S has left h from now.
	leaves(h time.Duration) float64
	// regrowth is E1 and E2: straight lines to h1 and on to h2 that what leaves never lies below.
	regrowth(h1, h2 time.Duration) (e1, e2 float64)
	// lag is how much longer than they should units stay in S, on average.
	lag() time.Duration
	// until is the time until S is below x; 0 if it is.
	until(x float64) time.Duration
	// setRule changes the amount.
	setRule(r *Rule)
	// export calls put for each field, or for those that changed since the last time.
	export(all bool, put func(index uint16, value uint64))
	// restore takes one exported field back.
	restore(index uint16, value uint64)
}

func newContent(r *Rule, now Millis) content {
	switch r.Algorithm {
	case TokenBucket:
		return newBucket(r, now)
	case Calendar:
		return newCalendar(r, now)
	default:
		return newWindow(r, now)
	}
}

// subBuckets is how finely a window is cut. One more is kept, for the oldest counts whole.
const subBuckets = 60

const windowSlots = subBuckets + 1

// window is a sliding window. Slot i%windowSlots holds sub-bucket i, which covers owner time
// [i, i+1)·W/60.
type window struct {
	micros int64 // W
	head   int64 // the sub-bucket of now
	now    Millis
	slots  [windowSlots]uint64
	total  uint64
	dirty  uint64 // a bit for each slot that changed since the last export
	used   uint64 // a bit for each slot that was ever filled
	moved  bool   // head, since the last export
}

func newWindow(r *Rule, now Millis) *window {
	w := &window{micros: max(r.WindowAt(now).Microseconds(), 1), now: now}
	w.head = w.index(now)
	return w
}

func (w *window) index(t Millis) int64 { return int64(t) * 1000 * subBuckets / w.micros }

// ends is the first owner time, Unix ms, at which sub-bucket i has left the window.
func (w *window) ends(i int64) Millis {
	const per = 1000 * subBuckets
	return Millis(((i+windowSlots)*w.micros + per - 1) / per)
}

func (w *window) advance(now Millis) bool {
	if now <= w.now {
		return false
	}
	w.now = now
	to := w.index(now)
	for i := max(w.head+1, to-windowSlots+1); i <= to; i++ {
		w.set(i, 0)
	}
	w.moved = w.moved || to != w.head
	w.head = to
	return false
}

func (w *window) set(i int64, n uint64) {
	slot := i % windowSlots
	if w.slots[slot] == n {
		return
	}
	w.total += n - w.slots[slot]
	w.slots[slot] = n
	w.dirty |= 1 << slot
	w.used |= 1 << slot
}

// add spreads n over the sub-buckets of [from, to] by time, to the last unit. What is older than the window
// has left it already.
func (w *window) add(from, to Millis, n uint64, _ Split) {
	to = min(to, w.now)
	from = min(from, to)
	first, last := w.index(from), w.index(to)
	length := float64(to-from) * 1000
	var given uint64
	for i := first; i < last; i++ {
		if skip := w.head - windowSlots; i < skip { // a long span: step over what is out of the window
			i = min(skip, last-1)
		}
		end := float64((i+1)*w.micros)/subBuckets - float64(from)*1000
		upto := uint64(min(end/length, 1) * float64(n))
		w.put(i, max(upto, given)-given)
		given = max(upto, given)
	}
	w.put(last, n-given)
}

func (w *window) put(i int64, n uint64) {
	if n > 0 && i > w.head-windowSlots && i <= w.head {
		w.set(i, w.slots[i%windowSlots]+n)
	}
}

func (w *window) sum() float64 { return float64(w.total) }

// leaves counts the sub-buckets that are wholly within h.
func (w *window) leaves(h time.Duration) float64 {
	gone := w.head - windowSlots + h.Microseconds()*subBuckets/w.micros
	var sum uint64
	for i := w.head - windowSlots + 1; i <= min(gone, w.head); i++ {
		sum += w.slots[i%windowSlots]
	}
	return float64(sum)
}

// regrowth draws the lines as steep as they can be without lying above what has left whenever a sub-bucket has: a burst
// that leaves near a line's far end must not lift all of it.
func (w *window) regrowth(h1, h2 time.Duration) (e1, e2 float64) {
	const per = 1000 * subBuckets
	knots := [2]float64{h1.Seconds(), h2.Seconds()}
	var line, from, gone float64
	i := w.head - windowSlots + 1
	for k, h := range knots {
		steep := math.Inf(1)
		for ; i <= w.head; i++ {
			// sub-bucket i leaves at the end of the one that follows the window's length after it
			t := float64((i+windowSlots)*w.micros-int64(w.now)*per) / (per * 1000)
			if t > h {
				break
			}
			gone += float64(w.slots[i%windowSlots])
			steep = min(steep, max(gone-line, 0)/max(t-from, 1e-3))
		}
		if !math.IsInf(steep, 1) {
			line = min(line+steep*(h-from), max(gone, line))
		}
		from = h
		if k == 0 {
			e1 = line
		}
	}
	return e1, line
}

// lag: half a sub-bucket, for a unit leaves with the whole one.
func (w *window) lag() time.Duration {
	return time.Duration(w.micros) * time.Microsecond / (2 * subBuckets)
}

func (w *window) until(x float64) time.Duration {
	left := float64(w.total)
	if left < x {
		return 0
	}
	for i := w.head - windowSlots + 1; i <= w.head; i++ {
		if left -= float64(w.slots[i%windowSlots]); left < x {
			return time.Duration(w.ends(i)-w.now) * time.Millisecond
		}
	}
	return time.Duration(w.micros) * time.Microsecond
}

func (w *window) setRule(*Rule) {} // the window is identity

const (
	fieldHead = fieldContent
	fieldSlot = fieldContent + 1
)

func (w *window) export(all bool, put func(uint16, uint64)) {
	changed := w.dirty
	if all {
		changed |= w.used
	}
	if all || w.moved || changed != 0 {
		put(fieldHead, uint64(w.head))
	}
	for i := range uint16(windowSlots) {
		if changed&(1<<i) != 0 {
			put(fieldSlot+i, w.slots[i])
		}
	}
	w.moved, w.dirty = false, 0
}

// restore: the head tells which sub-buckets the slots hold; advance drops those that are over.
func (w *window) restore(index uint16, value uint64) {
	switch {
	case index == fieldHead:
		if value > uint64(w.index(lastMillis)) {
			return
		}
		w.head = int64(value)
		w.now = Millis(w.head * w.micros / (1000 * subBuckets))
		for w.index(w.now) < w.head {
			w.now++
		}
	case index >= fieldSlot && index < fieldSlot+windowSlots:
		slot := index - fieldSlot
		w.total += value - w.slots[slot]
		w.slots[slot] = value
		w.used |= 1 << slot
	}
}
