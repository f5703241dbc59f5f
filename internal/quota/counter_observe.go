package quota

import "time"

// Observe is to be called instead of Flush at a flush period f in which no report can be sent, so that
// the estimate of demand does not take a slow log for a burst.
func (c *Counter) Observe(now Time, f time.Duration) {
	c.learn(now)
	c.clearFallback(now)
	c.rollPeriod(now)
	c.demand.update(now, c.cell.Requests(), c.cell.Offered(), f)
}

// Again makes the next Flush give an entry although nothing changed: the owner asked for the counter.
func (c *Counter) Again() {
	if !c.inflight {
		c.resend = true
	}
}
