package bus

import (
	"context"
	"math/rand/v2"
	"time"
)

// backoff gives growing, jittered waits. The zero value waits 0. Not safe for concurrent use.
type backoff struct {
	min, max time.Duration
	next     time.Duration
}

// step returns the next wait: between a half and the whole of a time that doubles from min to max.
func (b *backoff) step() time.Duration {
	b.next = min(max(2*b.next, b.min), b.max)
	if b.next <= 1 {
		return b.next
	}
	return b.next/2 + rand.N(b.next/2)
}

// reset starts again from min.
func (b *backoff) reset() { b.next = 0 }

// pause waits for d or the end of ctx, and says whether ctx lives.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
