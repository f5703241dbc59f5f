package quota

import (
	"math"
	"time"
)

// bucket is a token bucket, kept as debt = burst - tokens: so a changed burst keeps what was taken.
// Debt drains at the rate and never below 0.
type bucket struct {
	rate  float64 // units/ms
	debt  float64
	now   Millis
	empty float64 // owner time, ms, since when there is no debt; only if debt is 0
	dirty bool
}

func newBucket(r *Rule, now Millis) *bucket {
	b := &bucket{now: now, empty: float64(now) - float64(r.WindowAt(now).Milliseconds())}
	b.setRule(r)
	return b
}

func (b *bucket) setRule(r *Rule) { b.rate = max(r.RateAt(b.now)/1000, 1e-12) }

func (b *bucket) advance(now Millis) bool {
	if now <= b.now {
		return false
	}
	drained := float64(now-b.now) * b.rate
	if b.debt > 0 {
		if b.debt <= drained {
			b.empty = float64(b.now) + b.debt/b.rate
		}
		b.debt = max(b.debt-drained, 0)
		b.dirty = true
	}
	b.now = now
	return false
}

// add charges units that come to be known late: what the bucket could have drained since they were
// admitted, had it known of them, is drained at once.
func (b *bucket) add(from, _ Millis, n uint64, _ Split) {
	b.dirty = true
	left := float64(n)
	if b.debt <= 0 {
		b.empty = max(b.empty, float64(min(from, b.now)))
		drained := min((float64(b.now)-b.empty)*b.rate, left)
		b.empty += drained / b.rate
		left -= drained
	}
	b.debt += left
}

func (b *bucket) sum() float64 { return b.debt }

func (b *bucket) leaves(h time.Duration) float64 {
	return min(b.rate*float64(h)/float64(time.Millisecond), b.debt)
}

func (b *bucket) regrowth(h1, h2 time.Duration) (e1, e2 float64) { return b.leaves(h1), b.leaves(h2) }

func (b *bucket) lag() time.Duration { return 0 }

func (b *bucket) until(x float64) time.Duration {
	if b.debt < x {
		return 0
	}
	return time.Duration(math.Floor((b.debt-x)/b.rate)+1) * time.Millisecond
}

const (
	fieldDebt   = fieldContent
	fieldDebtAt = fieldContent + 1
	fieldEmpty  = fieldContent + 2
)

func (b *bucket) export(all bool, put func(uint16, uint64)) {
	if all || b.dirty {
		put(fieldDebt, bits(b.debt))
		put(fieldDebtAt, uint64(b.now))
		put(fieldEmpty, bits(b.empty))
	}
	b.dirty = false
}

func (b *bucket) restore(index uint16, value uint64) {
	switch index {
	case fieldDebt:
		if debt := floatOf(value); debt >= 0 && !math.IsInf(debt, 1) { // not a NaN
			b.debt = debt
		}
	case fieldDebtAt:
		if at, ok := storedMillis(value); ok {
			b.now = at
		}
	case fieldEmpty:
		if at := floatOf(value); math.Abs(at) <= float64(lastMillis) {
			b.empty = at
		}
	}
}
