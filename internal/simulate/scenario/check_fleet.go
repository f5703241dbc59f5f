package scenario

import (
	"time"
)

const (
	maxDelay   = 10 * time.Minute
	minPeriod  = time.Millisecond
	maxPeriod  = time.Hour
	maxBudget  = 1e12
	maxOwnSize = 10_000_000 // counters of a pod
)

func (c *checker) network(n *network) {
	c.delay("network.uplink", n.Uplink)
	c.delay("network.downlink", n.Downlink)
	if n.Ack != nil {
		c.delay("network.ack", *n.Ack)
	}
	within(c, "network.tail.probability", n.Tail.Probability, 0, 1)
	c.span("network.tail.max", n.Tail.Max, 0, maxDelay)
}

func (c *checker) delay(field string, d Delay) {
	low := c.span(field+".min", d.Min, 0, maxDelay)
	high := c.span(field+".max", d.Max, 0, maxDelay)
	if low && high && d.Min > d.Max {
		c.fail(field, "has min "+short(d.Min)+" above max "+short(d.Max), "raise max, or lower min")
	}
}

// timing checks the periods; staleAfter and fallbackFloor are checked with the policy.
func (c *checker) timing(t *Timing) {
	c.span("timing.flush", t.Flush, minPeriod, maxPeriod)
	tick := c.span("timing.tick", t.Tick, minPeriod, maxPeriod)
	if !c.has("timing.idleTick") {
		t.IdleTick = max(t.IdleTick, t.Tick)
	}
	if c.span("timing.idleTick", t.IdleTick, minPeriod, maxPeriod) && tick && t.IdleTick < t.Tick {
		c.fail("timing.idleTick", "is "+short(t.IdleTick)+", below tick, "+short(t.Tick), "raise it")
	}
	within(c, "timing.maxBytes", t.MaxBytes, 0, maxBudget)
	within(c, "timing.maxBatches", t.MaxBatches, 0, maxBudget)
	within(c, "timing.maxCounters", t.MaxCounters, 0, maxOwnSize)
}
