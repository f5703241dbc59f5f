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
	known  bool
}

// Heard takes note of a record that was appended then and is received now, at once.
func (c *Clock) Heard(appended time.Time, now time.Duration) {
	if !c.known || appended.After(c.newest) {
		c.newest, c.at = appended, now
	}
	c.known = true
}

// Read takes note of a record that may have waited before it is received: it says that the time is at least
// its append time.
func (c *Clock) Read(appended time.Time, now time.Duration) {
	if appended.After(c.newest.Add(now - c.at)) {
		c.newest, c.at = appended, now
	}
}

// Known reports whether a record was ever Heard. Before, ages are at least what Age says, and may be far more.
func (c *Clock) Known() bool { return c.known }

// Age is how long ago a record was appended.
func (c *Clock) Age(appended time.Time, now time.Duration) time.Duration {
	return c.newest.Sub(appended) + (now - c.at)
}
