package quota

import "time"

// calendar is a counter that begins anew with each civil period.
type calendar struct {
	rule       *Rule
	start, end Millis
	now        Millis
	count      uint64
	early      uint64 // of the next period, from pods whose civil time is ahead
	dirty      bool
}

func newCalendar(r *Rule, now Millis) *calendar {
	c := &calendar{rule: r, now: now}
	c.start, c.end = PeriodAt(r.Period, r.Location, now)
	return c
}

func (c *calendar) setRule(r *Rule) { c.rule = r }

func (c *calendar) advance(now Millis) bool {
	c.now = max(c.now, now)
	if c.now < c.end {
		return false
	}
	c.start, c.end = PeriodAt(c.rule.Period, c.rule.Location, c.now)
	c.count, c.early, c.dirty = c.early, 0, true
	return true
}

// add charges the part that lies in the present period. An entry that the pod split at the reset is on the
// side that the pod said: delays would else move units across.
func (c *calendar) add(from, to Millis, n uint64, split Split) {
	nearest := c.start
	if c.end-to < to-c.start {
		nearest = c.end
	}
	switch split {
	case EndsAtReset:
		to = min(to, nearest-1)
		from = min(from, to)
	case StartsAtReset:
		from = max(from, nearest)
	}
	if from >= c.end {
		c.early += n
		return
	}
	to = max(min(to, c.now), from)
	if to < c.start {
		return
	}
	if from < c.start {
		n = uint64(float64(n) * float64(to-c.start) / float64(to-from))
	}
	c.count += n
	c.dirty = c.dirty || n > 0
}

func (c *calendar) sum() float64                 { return float64(c.count) }
func (c *calendar) leaves(time.Duration) float64 { return 0 }

func (c *calendar) regrowth(time.Duration, time.Duration) (e1, e2 float64) { return 0, 0 }

func (c *calendar) lag() time.Duration { return 0 }

func (c *calendar) until(x float64) time.Duration {
	if float64(c.count) < x {
		return 0
	}
	return c.resetIn()
}

func (c *calendar) resetIn() time.Duration {
	return time.Duration(max(c.end-c.now, 0)) * time.Millisecond
}

const (
	fieldPeriod = fieldContent // its start, Unix ms
	fieldCount  = fieldContent + 1
)

func (c *calendar) export(all bool, put func(uint16, uint64)) {
	if all || c.dirty {
		put(fieldPeriod, uint64(c.start))
		put(fieldCount, c.count)
	}
	c.dirty = false
}

// restore: a stored period that is over is dropped by the next advance.
func (c *calendar) restore(index uint16, value uint64) {
	switch index {
	case fieldPeriod:
		if at, ok := storedMillis(value); ok {
			c.now = at
			c.start, c.end = PeriodAt(c.rule.Period, c.rule.Location, at)
		}
	case fieldCount:
		c.count = value
	}
}
