package quota

import (
	"sync/atomic"
	"time"
)

// LayoutVersion changes with the meaning of a Cell's words.
const LayoutVersion = 2

// CellWords is a Cell's size in 64-bit words: seven 64-byte lines.
const CellWords = 56

// Cell is the hot part of a counter on a pod: a fixed array of words without pointers, so that it may
// lie in any memory. Words are either add-only (checks) or the control goroutine's alone. Counter.Init makes
// it ready. Safe for concurrent use by Decide; all else goes through the Counter.
type Cell struct{ w [CellWords]atomicWord }

type atomicWord = atomic.Uint64

// The words. Line 0: what checks add to. Lines 1, 2: the own window. Line 3: written rarely. Lines 4 to 6: the view.
const (
	wAdmitted = iota // units admitted
	wOffered         // units of the requests that no other enforced rate refused
	wRequests        // those requests: the counter's demand
	wUsed            // Time of a late use, coarse
	wFirst           // Time of the first admission since the last flush, 0: none
	wNewest          // Time of the newest admission, to 1 ms
	wCand            // learned-burst candidate, units (float bits), only grows until taken
	wCandAt          // its Time
	wOwn             // ownBuckets words: bucket number << ownShift | units
	wVersion  = wOwn + ownBuckets
	wWidth    = wVersion + 1 // own window's bucket, ns; 0: one bucket a Calendar period
	wForfeit  = wVersion + 2 // fallback: credit that was drawn or capped away (float bits)
	wDraw     = wVersion + 3 // fallback: Time of the last draw for a fraction
	wFlushed  = wVersion + 4 // wRequests at the last flush
	wFlushAt  = wVersion + 5 // Time of the last flush
	wExpect   = wVersion + 6 // demand expected, requests/ns (float bits)
	wSurge    = wVersion + 7 // requests beyond what is expected that make a flush urgent (float bits)
	wView     = wVersion + 8 // the view, but while it is written
)

const (
	ownBuckets = 16
	ownShift   = 40
	ownMask    = 1<<ownShift - 1
	ownNumbers = 1<<(64-ownShift) - 1
)

// Admitted is the number of units admitted since the slot was made.
func (c *Cell) Admitted() uint64 { return c.w[wAdmitted].Load() }

// Offered is the units offered since the slot was made, of requests that no other enforced rate refused.
func (c *Cell) Offered() uint64 { return c.w[wOffered].Load() }

// Requests is the number of requests behind Offered.
func (c *Cell) Requests() uint64 { return c.w[wRequests].Load() }

// LastUse is the time of the last check, to a tenth of a second; 0: none.
func (c *Cell) LastUse() Time { return Time(c.w[wUsed].Load()) }

// ownNumber is the number of the bucket that now belongs to. In a Calendar counter it is the period's.
func (c *Cell) ownNumber(now Time, v *view) uint64 {
	if width := c.w[wWidth].Load(); width > 0 {
		return uint64(now) / width & ownNumbers
	}
	if v.reset != 0 && now >= v.reset {
		return (v.period + 1) & ownNumbers
	}
	return v.period & ownNumbers
}

// own is the content of the pod's own window that ends in bucket number, the oldest bucket whole.
func (c *Cell) own(number uint64) uint64 {
	if c.w[wWidth].Load() == 0 {
		return c.ownBucket(number)
	}
	var sum uint64
	for i := range uint64(ownBuckets) {
		word := c.w[wOwn+i].Load()
		if (number-word>>ownShift)&ownNumbers < ownBuckets {
			sum += word & ownMask
		}
	}
	return sum
}

func (c *Cell) ownBucket(number uint64) uint64 {
	word := c.w[wOwn+number%ownBuckets].Load()
	if word>>ownShift != number {
		return 0
	}
	return word & ownMask
}

// addOwn charges n units to bucket number, which the first to arrive rolls. A check so late that the
// bucket has been rolled on adds to the newer round: units leave late, never early.
func (c *Cell) addOwn(number, n uint64) {
	word := &c.w[wOwn+number%ownBuckets]
	for {
		old := word.Load()
		content := number<<ownShift | min(n, ownMask)
		if (old>>ownShift-number)&ownNumbers <= 2*ownBuckets {
			if old&ownMask+n <= ownMask {
				word.Add(n)
				return
			}
			content = old | ownMask // full: stay full
		}
		if word.CompareAndSwap(old, content) {
			return
		}
	}
}

// setWidth makes the own window's length w. What the old buckets held moves to the newest one, so that a
// changed length never forgets units early.
func (c *Cell) setWidth(w time.Duration, now Time) {
	width := uint64(max(int64(w)/(ownBuckets-1), 1))
	old := c.w[wWidth].Load()
	if old == width {
		return
	}
	var held uint64
	if old != 0 {
		held = c.own(uint64(now) / old & ownNumbers)
	}
	c.w[wWidth].Store(width)
	for i := range ownBuckets {
		c.w[wOwn+i].Store(0)
	}
	if held > 0 {
		c.addOwn(uint64(now)/width&ownNumbers, held)
	}
}

func (c *Cell) clear() {
	for i := range c.w {
		c.w[i].Store(0)
	}
}
