package quota

import "time"

// periodSlack is how far the ends of periods may lie apart and still be one: two versions of the time-zone
// rules may differ, clocks of owner and pod by their delays.
const periodSlack = Millis(time.Second / time.Millisecond)

// findPeriod looks up the civil period as soon as the pod knows the time.
func (c *Counter) findPeriod(now Time) {
	if c.rule.Algorithm != Calendar || c.periodEnd != 0 {
		return
	}
	if at, known := c.fresh.OwnerTime(now); known {
		_, c.periodEnd = PeriodAt(c.rule.Period, c.rule.Location, at)
	}
}

// rollPeriod begins a new period if its time has come: what was admitted until then is cut off, and the record
// stands for an untouched counter until the owner's comes.
func (c *Counter) rollPeriod(now Time) {
	if c.rule.Algorithm != Calendar {
		return
	}
	if c.periodEnd == 0 {
		if c.findPeriod(now); c.periodEnd != 0 {
			c.evaluate(now)
		}
		return
	}
	at, known := c.fresh.OwnerTime(now)
	if !known || at < c.periodEnd {
		return
	}
	next := (c.period + 1) & ownNumbers
	_, end := PeriodAt(c.rule.Period, c.rule.Location, at)
	c.beginPeriod(c.cell.Admitted()-c.cell.ownBucket(next), end, c.fresh.podTime(c.periodEnd))
	c.evaluate(now)
}

func (c *Counter) beginPeriod(cut uint64, end Millis, at Time) {
	c.period++
	c.periodEnd = end
	c.cut, c.cutAt = cut, at
	if c.decision == nil {
		return
	}
	r := &c.decision.record
	r.Remaining, r.Content = r.Amount, 0
	r.Paced, r.BlockedFor = false, 0
}

// meetPeriod brings record and pod to the same period. It is false for a record of a period that is over
// here; one of a period that has not begun here begins it.
func (c *Counter) meetPeriod(h Header, r *Record, now Time) bool {
	c.rollPeriod(now)
	end := h.OwnerTime + Millis(r.ResetIn/time.Millisecond)
	switch {
	case c.periodEnd == 0:
		c.periodEnd = end
	case end < c.periodEnd-periodSlack:
		return false
	case end > c.periodEnd+periodSlack:
		c.beginPeriod(c.cell.Admitted(), end, now)
	}
	return true
}
