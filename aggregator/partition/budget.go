package partition

import (
	"time"

	"github.com/weirproxy/weir/internal/quota"
)

// budget is a token bucket: rate a second, at most burst at once. It may be overdrawn, and waits
// then until it is paid back.
type budget struct {
	rate, burst, left float64
	at                quota.Time
}

func newBudget(rate, burst float64, t quota.Time) budget {
	return budget{rate: rate, burst: burst, left: burst, at: t}
}

func (b *budget) available(t quota.Time) float64 {
	if t > b.at {
		b.left = min(b.burst, b.left+b.rate*time.Duration(t-b.at).Seconds())
		b.at = t
	}
	return b.left
}

func (b *budget) take(n float64) { b.left -= n }
