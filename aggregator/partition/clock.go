package partition

import (
	"time"

	"github.com/weirproxy/weir/internal/quota"
)

// maxJump is how far owner time may run ahead of monotonic time at once, and in each such period.
const maxJump = time.Second

// clock is owner time: the highest append time seen plus monotonic time since. While replaying it is
// the highest append time alone. It never goes back.
type clock struct {
	at       quota.Millis
	since    quota.Time // monotonic time at which it was `at`
	live     bool
	lastJump quota.Time
	jumped   bool
}

func (c *clock) now(t quota.Time) quota.Millis {
	if !c.live || t < c.since {
		return c.at
	}
	return c.at + quota.Millis((t-c.since)/quota.Time(time.Millisecond))
}

// replay takes an append time of a replayed record.
func (c *clock) replay(appended quota.Millis) { c.at = max(c.at, appended) }

// start ends the replay: owner time runs from now on.
func (c *clock) start(floor quota.Millis, t quota.Time) {
	c.at, c.since, c.live = max(c.at, floor), t, true
}

// append takes a live record's append time and reports whether it was capped: it was more than
// maxJump ahead of monotonic time.
func (c *clock) append(appended quota.Millis, t quota.Time) (capped bool) {
	now := c.now(t)
	if appended <= now {
		return false
	}
	limit := now + quota.Millis(maxJump/time.Millisecond)
	if appended <= limit {
		c.at, c.since = appended, t
		return false
	}
	if c.jumped && t-c.lastJump < quota.Time(maxJump) {
		return true
	}
	c.at, c.since, c.lastJump, c.jumped = limit, t, t, true
	return true
}
