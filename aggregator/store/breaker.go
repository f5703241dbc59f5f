package store

import (
	"math/rand/v2"
	"sync"
	"time"
)

const (
	breakerAfter   = 3                      // failures in a row that open it
	breakerFirst   = 100 * time.Millisecond // pause after opening, doubled
	breakerLongest = 2 * time.Second        // up to this
)

// breaker lets calls pass until some in a row have failed, and then one for each pause, which grows
// and is jittered. It is safe for concurrent use; its zero value is closed.
type breaker struct {
	mu       sync.Mutex
	failures int
	pause    time.Duration
	until    time.Time
}

// allow reports whether a call may be tried now.
func (b *breaker) allow(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failures < breakerAfter {
		return true
	}
	if now.Before(b.until) {
		return false
	}
	b.until = now.Add(b.pause) // the one that tries
	return true
}

func (b *breaker) done(ok bool, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if ok {
		b.failures, b.pause = 0, 0
		return
	}
	if b.failures++; b.failures < breakerAfter {
		return
	}
	b.pause = min(max(2*b.pause, breakerFirst), breakerLongest)
	b.until = now.Add(b.pause/2 + rand.N(b.pause/2)) //nolint:gosec // jitter, no secret
}
