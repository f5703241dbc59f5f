package content

import (
	"math"
	"time"

	"github.com/weirproxy/weir/internal/quota"
)

// Quantity is the quota and its window in whole seconds, which is all that the fields can say: a
// window that is none is scaled to the next one. A month and a year have no fixed length: 0.
func Quantity(r *quota.Rule) (q, w int64) {
	if r.Algorithm == quota.Calendar {
		return Units(r.Limit), periodSeconds(r.Period)
	}
	w = Seconds(r.Window)
	if r.Window <= 0 {
		return Units(r.Limit), 0
	}
	return Units(r.Limit * float64(w) / r.Window.Seconds()), w
}

func periodSeconds(p quota.Period) int64 {
	switch p {
	case quota.Hour:
		return 3600
	case quota.Day:
		return 86_400
	case quota.Week:
		return 604_800
	default:
		return 0
	}
}

// Units is v rounded down, within what an integer of a structured field may be.
func Units(v float64) int64 {
	return int64(min(math.Floor(max(v, 0)+1e-9), 999_999_999_999_999))
}

// Seconds rounds up, and is at least 1: a client that waits so long does not come early.
func Seconds(d time.Duration) int64 {
	return max(1, int64((d+time.Second-1)/time.Second))
}

// RetryAfter spreads returning clients: up to a quarter of the wait, at least 1 s and at most 60 s,
// is added at random.
func RetryAfter(d time.Duration, random uint64) int64 {
	d = max(d, 0)
	spread := min(max(d/4, time.Second), time.Minute)
	return Seconds(d + time.Duration(random%uint64(spread))) //nolint:gosec // spread is positive
}
