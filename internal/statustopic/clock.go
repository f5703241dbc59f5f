package statustopic

import "time"

// Stale is the silence after which a pod no longer counts as live: three heartbeats.
const Stale = 30 * time.Second

// Clock tells the ages of records. A record's age is measured against the newest append time seen, so
// that no wall clock of ours enters it and a reader that begins with old records sees them as old. The
// zero value has heard nothing. Not safe for concurrent use.
type Clock struct {
	newest time.Time     // append time
	at     time.Duration // monotonic time of receipt of newest
}

// Heard takes note of a record that was appended then and is received now.
func (c *Clock) Heard(appended time.Time, now time.Duration) {
	if appended.After(c.newest) {
		c.newest, c.at = appended, now
	}
}

// Age is how long ago a record was appended.
func (c *Clock) Age(appended time.Time, now time.Duration) time.Duration {
	return c.newest.Sub(appended) + (now - c.at)
}
