package quota

import "time"

const (
	skipPart   = 8 // unreported units may be 1/8 of the share
	skipLong   = time.Second
	skipTimes  = 2 // of the expected demand
	skipExtra  = 5 // requests
	learnAfter = 500 * time.Millisecond
	learnDecay = 60 * time.Second
	// atOnce is how long requests may have waited for the decision that includes them, and still be one burst: where it
	// takes longer, what no decision includes is the load.
	atOnce     = 300 * time.Millisecond
	learnFloor = 0.05 // of M: with less left, a burst would have done harm
	tellTimes  = 1.25 // of the burst that the record knows
)

// Flush is to be called every flush period f while the counter is not Settled, at once when it is Urgent, and
// with force when all must go out (shut-down). It returns up to two entries, in order of time: two if a
// Calendar period ended since the last one. n is 0 if there is nothing to say, or it can wait. The caller hands
// the entries to the producer at once (ages count from now), and then calls Acknowledge or Lost; until
// then further flushes return nothing. Identity text is the caller's.
func (c *Counter) Flush(now Time, f time.Duration, force bool) (entries [2]Entry, n int) {
	requests, offered := c.cell.Requests(), c.cell.Offered()
	admitted := c.cell.Admitted()
	c.learn(now)
	c.clearFallback(now)
	c.rollPeriod(now)
	c.demand.update(now, requests, offered, f)
	if c.inflight {
		return entries, 0
	}
	changed := requests != c.cell.w[wFlushed].Load() || admitted != c.base
	if !changed && !c.resend {
		return entries, 0
	}
	if !force && !c.resend && c.cutting() == 0 && c.maySkip(now, requests, offered, admitted) {
		return entries, 0
	}
	return c.build(now, f, offered, admitted)
}

func (c *Counter) build(now Time, f time.Duration, offered, admitted uint64) (entries [2]Entry, n int) {
	c.sent = flushed{
		cumulative: admitted, offered: offered,
		rate: c.demand.present(now, f), mean: c.demand.mean, at: now,
	}
	first := Time(c.cell.w[wFirst].Swap(0))
	if c.first == 0 {
		c.first = first
	}
	e := Entry{
		Made: c.made, Cumulative: admitted, Base: c.base, Offered: offered,
		Demand: c.sent.rate, MeanCost: c.demand.mean, Burst: c.burst(now),
	}
	newest := Time(c.cell.w[wNewest].Load())
	cut, cutAt := c.cut(), c.cutting()
	if cutAt != 0 && cut > c.base && cut <= admitted {
		entries[n] = e
		entries[n].Cumulative = cut
		entries[n].when(c.first, min(newest, cutAt-Time(time.Millisecond)), now)
		n++
	}
	if n == 0 || admitted > cut {
		from := c.first
		if cutAt != 0 {
			from = max(from, cutAt)
		}
		entries[n] = e
		entries[n].when(from, newest, now)
		n++
	}
	c.sent.late = entries[n-1].Age + entries[n-1].Span/2
	c.inflight, c.resend = true, false
	c.cell.w[wFlushed].Store(c.demand.requests)
	c.cell.w[wFlushAt].Store(uint64(now))
	c.expect()
	return entries, n
}

// when sets an entry's span and age from the times of its first and newest unit.
func (e *Entry) when(first, newest, now Time) {
	if e.Cumulative == e.Base || newest == 0 {
		return
	}
	newest = min(newest, now)
	e.Age = time.Duration(now - newest)
	if first != 0 && first < newest {
		e.Span = time.Duration(newest - first)
	}
}

// maySkip is the adaptive skip: while there is much left, nothing was refused, and little is unreported.
func (c *Counter) maySkip(now Time, requests, offered, admitted uint64) bool {
	since := time.Duration(now - c.sent.at)
	if c.decision == nil || c.decision.record.Paced || c.sent.at == 0 || since >= skipLong {
		return false
	}
	var v view
	c.cell.read(c.fresh, &v)
	x := v.curve(v.renew(now, c.fresh)+v.lead, true)
	if x <= 2*v.lam || offered-c.sent.offered != admitted-c.sent.cumulative {
		return false
	}
	unreported := float64(admitted - c.sent.cumulative)
	news := float64(requests - c.cell.w[wFlushed].Load())
	expected := c.sent.rate * since.Seconds()
	return unreported*skipPart < v.s*x && news < skipTimes*expected+skipExtra
}

// Urgent says that far more demand came since the last flush than the owner expects, so that the counter's
// partition should be flushed now, not at the next period.
func (c *Counter) Urgent(now Time) bool {
	x := float64(c.cell.Requests() - c.cell.w[wFlushed].Load())
	return !c.inflight && x >= surgeRequests && c.cell.surging(x, float64(uint64(now)-c.cell.w[wFlushAt].Load()))
}

// expect tells checks what demand to expect until the next flush.
func (c *Counter) expect() {
	c.cell.w[wExpect].Store(bits(perNano(c.demand.rate)))
	c.cell.w[wSurge].Store(bits(surgePart * c.rule.Amount()))
}

// Acknowledge says that the report of the last Flush is in the log. If the newest header includes it
// already, the decision is evaluated anew at once.
func (c *Counter) Acknowledge(offset int64, appended Millis, now Time) {
	if !c.inflight {
		return
	}
	c.inflight, c.resend = false, false
	c.base, c.first = c.sent.cumulative, 0
	c.closeCut(c.sent.at)
	c.wait(report{included{c.sent, appended}, offset})
	if c.take(c.watermark(), now) {
		c.evaluate(now)
	}
}

// wait keeps a report until a watermark reaches it.
func (c *Counter) wait(r report) {
	if c.pending == nil {
		c.pending = new(waiting)
	}
	p := c.pending
	if len(p.reports) == maxPending {
		p.reports[maxPending-1] = r
	} else {
		p.reports = append(p.reports, r)
	}
}

// Lost says that the report of the last Flush may not be in the log. The next one carries all of it:
// counts are cumulative.
func (c *Counter) Lost() {
	if c.inflight {
		c.inflight, c.resend = false, true
	}
}

// clearFallback gives a later outage a clean start.
func (c *Counter) clearFallback(now Time) {
	age, ok := c.fresh.Age(now)
	if ok && age <= c.rule.staleAfter() && c.cell.w[wForfeit].Load() != 0 {
		c.cell.w[wForfeit].Store(0)
	}
}

// learn turns a candidate into the learned burst once half a second has shown it harmless (ALGORITHM 8).
func (c *Counter) learn(now Time) {
	cand := float(&c.cell.w[wCand])
	if cand == 0 {
		return
	}
	if now < c.late || c.inflight && time.Duration(now-c.sent.at) > atOnce {
		c.cell.w[wCand].Store(0)
		return
	}
	d := c.decision // nil: the owner is silent of the counter, since much is left
	if d == nil || !d.record.Paced && d.record.Remaining >= learnFloor*d.record.Amount {
		if time.Duration(int64(now)-int64(c.cell.w[wCandAt].Load())) < learnAfter {
			return
		}
		c.learned = &learned{max(c.burst(now), cand), now}
		c.tell(d)
	}
	c.cell.w[wCand].Store(0)
	c.evaluate(now)
}

// tell has a burst reported that the fleet does not know of: the pod's next request may be long in coming.
func (c *Counter) tell(d *decided) {
	if known := d != nil && c.learned.units <= tellTimes*d.record.Burst+one(c.demand.mean); !known {
		c.Again()
	}
}

// burst is the learned burst, units, as it has faded until now.
func (c *Counter) burst(now Time) float64 {
	if c.learned == nil {
		return 0
	}
	return c.learned.units * fade(time.Duration(now-c.learned.at))
}
