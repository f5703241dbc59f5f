package quota

import "time"

// periodSlack is how far the ends of periods may lie apart and still be one: two versions of the time-zone
// rules may differ, clocks of owner and pod by their delays.
const periodSlack = Millis(time.Second / time.Millisecond)

// findPeriod looks up the civil period as soon as the pod knows the time.
func (c *Counter) findPeriod(now Time) {
	if c.civil == nil || c.civil.end != 0 {
		return
	}
	if at, known := c.fresh.OwnerTime(now); known {
		_, c.civil.end = PeriodAt(c.rule.Period, c.rule.Location, at)
	}
}

// rollPeriod begins a new period if its time has come: what was admitted until then is cut off, and the record
// stands for an untouched counter until the owner's comes.
func (c *Counter) rollPeriod(now Time) {
	if c.civil == nil {
		return
	}
	if c.civil.end == 0 {
		if c.findPeriod(now); c.civil.end != 0 {
			c.evaluate(now)
		}
		return
	}
	at, known := c.fresh.OwnerTime(now)
	if !known || at < c.civil.end {
		return
	}
	next := (c.civil.period + 1) & ownNumbers
	_, end := PeriodAt(c.rule.Period, c.rule.Location, at)
	c.beginPeriod(c.cell.Admitted()-c.cell.ownBucket(next), end, c.fresh.podTime(c.civil.end))
	c.evaluate(now)
}

func (c *Counter) beginPeriod(cut uint64, end Millis, at Time) {
	*c.civil = resets{c.civil.period + 1, end, cut, at}
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
	case c.civil.end == 0:
		c.civil.end = end
	case end < c.civil.end-periodSlack:
		return false
	case end > c.civil.end+periodSlack:
		c.beginPeriod(c.cell.Admitted(), end, now)
	}
	return true
}

// cut is what was admitted until the last reset.
func (c *Counter) cut() uint64 {
	if c.civil == nil {
		return 0
	}
	return c.civil.cut
}

// cutting is when the last reset was, until it is reported; 0: nothing is to be split.
func (c *Counter) cutting() Time {
	if c.civil == nil {
		return 0
	}
	return c.civil.cutAt
}

// closeCut forgets a reset that came before the report at sent.
func (c *Counter) closeCut(sent Time) {
	if c.civil != nil && c.civil.cutAt <= sent {
		c.civil.cutAt = 0
	}
}
