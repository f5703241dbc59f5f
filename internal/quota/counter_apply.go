package quota

import (
	"math"
	"time"
)

// Apply takes a record in, if it is newer than the one held, by owner epoch and sequence. h is its batch's
// header, observed by the counter's Fresh before. It reports whether it was taken.
func (c *Counter) Apply(h Header, r Record, now Time, rnd *Rand) bool {
	if d := c.decision; d != nil && (h.Epoch < d.header.Epoch || h.Epoch == d.header.Epoch && h.Sequence <= d.header.Sequence) {
		return false
	}
	if c.rule.Algorithm == Calendar && !c.meetPeriod(h, &r, now) {
		return false
	}
	if c.decision == nil {
		c.decision = new(decided)
	}
	*c.decision = decided{c.fresh.share(h), r, rnd.Float64()}
	c.take(h.Watermark, now)
	c.learn(now)
	c.cell.w[wForfeit].Store(0)
	c.evaluate(now)
	return true
}

// Include is to be called when the newest header's watermark has reached a report of this counter and
// its batch held no record of it: the pod's own part moves on with what the header renews.
func (c *Counter) Include(now Time, rnd *Rand) {
	if !c.take(c.watermark(), now) || c.decision == nil {
		return
	}
	c.decision.phi = rnd.Float64()
	c.learn(now)
	c.evaluate(now)
}

// DropLog forgets what belongs to the log id that is gone: offsets and the record. Counts and base go on.
func (c *Counter) DropLog(now Time) {
	c.Lost()
	c.pending, c.decision = nil, nil
	c.included = included{}
	c.evaluate(now)
}

// renewed is the header that the record stands on: the newest that renews it, else its own.
func (c *Counter) renewed() *Header {
	h := c.decision.header
	if r := &c.fresh.renewing; r.Epoch == h.Epoch && r.Sequence > h.Sequence {
		return r
	}
	return h
}

// watermark is how far the decision in force includes the log. For a cold counter that is what any
// header includes: a record made later includes it too.
func (c *Counter) watermark() int64 {
	if c.decision != nil {
		return c.renewed().Watermark
	}
	if h, ok := c.fresh.Newest(); ok {
		return h.Watermark
	}
	return -1
}

// take moves the included report on to the newest at or below the watermark; it says whether it moved.
func (c *Counter) take(watermark int64, now Time) bool {
	if c.pending == nil {
		return false
	}
	reports := c.pending.reports
	n := 0
	for n < len(reports) && reports[n].offset <= watermark {
		n++
	}
	if n == 0 {
		c.thin()
		return false
	}
	c.included = reports[n-1].included
	if took := time.Duration(now - c.included.at); took > atOnce {
		c.late = now + Time(took+atOnce)
	}
	if n == len(reports) { // as most of the time: nothing to keep memory for
		c.pending = nil
		return true
	}
	c.pending.reports = reports[:copy(reports, reports[n:])]
	return true
}

// thin keeps only the newest of the reports that any later decision includes, so that a counter which waits
// long for a record (deferred, or under a new owner) does not meet it with old reports alone.
func (c *Counter) thin() {
	h, ok := c.fresh.Newest()
	reports := c.pending.reports
	n := 0
	for ok && n < len(reports) && reports[n].offset <= h.Watermark {
		n++
	}
	if n > 1 {
		c.pending.reports = reports[:copy(reports, reports[n-1:])]
	}
}

// evaluate computes the view from all that the counter knows, and publishes it.
func (c *Counter) evaluate(now Time) {
	v := view{mean: 1, at: now}
	pods, _ := c.fleet.Pods()
	strict := c.rule.strict(pods)
	c.ruleView(&v, now)
	if strict {
		v.flags |= flagStrict
	} else {
		v.lead = float64(c.fresh.lead)
	}
	if c.decision != nil {
		c.recordView(&v, now)
	}
	c.cell.write(c.fresh, &v)
}

// ruleView fills in what the pod's own policy says.
func (c *Counter) ruleView(v *view, now Time) {
	at, known := c.fresh.OwnerTime(now)
	v.m = c.rule.Amount()
	switch c.rule.Algorithm {
	case TokenBucket:
		v.flags |= flagBucket
	case Calendar:
		v.flags |= flagCalendar
		v.period = c.civil.period & ownNumbers
		at = c.civil.end - 1
		if known && c.civil.end != 0 {
			v.reset = c.fresh.podTime(c.civil.end)
		}
	}
	v.w = float64(c.rule.WindowAt(at))
	v.lr = perNano(c.rule.RateAt(at))
	v.r = v.m
}

// recordView fills in the decision.
func (c *Counter) recordView(v *view, now Time) {
	r, h := &c.decision.record, c.renewed()
	v.flags |= flagRecord
	v.phi = c.decision.phi
	v.at = c.decision.header.Received
	v.inc, v.incOffers = max(c.included.cumulative, c.cut()), c.included.offered
	v.mean = one(c.included.mean)
	if c.included.at == 0 {
		v.mean = one(r.MeanCost)
	}
	c.curveView(v)
	H := horizon(h.Flush, h.Tick)
	rate := present(c.included.rate, c.included.appended, h.OwnerTime, h.Flush)
	c.shareView(v, rate, H)
	c.overView(v, now)
	since := H
	if c.included.at != 0 {
		most := horizon(min(2*c.included.late, h.Flush), h.Tick)
		since = min(max(time.Duration(h.Received-c.included.at).Seconds(), 0), most)
	}
	v.tau0 = since*1e9 + float64(10*time.Millisecond)
	if r.Paced {
		v.flags |= flagPaced
		v.g = perNano(r.Grant)
		if r.Rate > 0 {
			v.g *= v.lr * 1e9 / r.Rate
		}
	}
	if r.BlockedFor > 0 {
		v.blocked = v.at + Time(r.BlockedFor)
	}
}

// curveView: the record's curve, under the pod's own amount: what is left moves by as much as the amount.
func (c *Counter) curveView(v *view) {
	r := &c.decision.record
	v.r = r.Remaining + v.m - r.Amount
	switch c.rule.Algorithm {
	case TokenBucket:
		v.r = min(v.m, v.r)
		v.k1 = v.lr
	case SlidingWindow:
		h1, h2 := knots(v.w)
		v.k1 = max(r.Expire1, 0) / h1
		v.k2 = max(r.Expire2-r.Expire1, 0) / (h2 - h1)
		v.k3 = max(v.m-v.r-max(r.Expire2, r.Expire1, 0), 0) / (v.w - h2)
	}
}

// shareView: the pod's part of what is left, and the size of what is expected within the horizon H, seconds.
func (c *Counter) shareView(v *view, rate, H float64) {
	r := &c.decision.record
	di := rate * v.mean
	v.di = perNano(di)
	if r.ShareSum > 0 {
		v.s = min(min(di+r.Epsilon, r.Level)/r.ShareSum, 1)
	} else {
		pods, _ := c.fleet.Pods()
		v.s = 1 / float64(pods)
	}
	v.lam = max(r.Demand*one(r.MeanCost)*H, one(r.MeanCost))
	v.q = min(1, max(1-math.Exp(-rate*H), v.s*v.lam/v.mean))
}

// overView: what the pod may take beyond its share while there is slack.
func (c *Counter) overView(v *view, now Time) {
	switch {
	case v.has(flagStrict) || c.rule.Overcommit == OvercommitNone:
	case c.rule.Overcommit == OvercommitFixed:
		v.flags |= flagFixed
		v.over = c.rule.OvercommitPart
	default:
		v.flags |= flagLearned
		v.over = v.mean + 1.5*max(c.burst(now), c.decision.record.Burst)
	}
}

// fade is what a learned burst keeps after age.
func fade(age time.Duration) float64 { return math.Exp(-max(age, 0).Seconds() / learnDecay.Seconds()) }
