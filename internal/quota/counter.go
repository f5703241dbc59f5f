package quota

import "time"

// Counter is the control side of a Cell: what a pod reports of it and makes of decisions. All methods
// are for one goroutine at a time; a goroutine that makes a slot may call Init and Apply before it hands
// the Counter over. The zero value is not ready: call Init.
type Counter struct {
	cell   *Cell
	rule   *Rule
	fresh  *Fresh
	fleet  *Fleet
	made   uint64
	madeAt Time

	demand   estimator
	sent     flushed // newest report, acknowledged or not
	inflight bool    // sent is not acknowledged
	resend   bool    // a report was lost: send even if nothing changed
	base     uint64  // admitted, acknowledged
	first    Time    // of the first admission above base; 0: none
	included included
	late     Time // until then decisions come too late to tell a burst from the load

	// What many counters never have, or not for long.
	pending  *waiting // nil: no report awaits a watermark
	decision *decided // in force; nil: cold
	learned  *learned // nil: no burst
	civil    *resets  // nil: not a Calendar counter
}

// waiting are the reports that await a watermark, by offset.
type waiting struct{ reports []report }

// learned is a burst that did no harm.
type learned struct {
	units float64
	at    Time
}

// resets are what a Calendar counter knows of its period.
type resets struct {
	period uint64
	end    Millis // 0: not known
	cut    uint64 // admitted at the last reset
	cutAt  Time   // when that was, until reported; 0: nothing to split
}

// decided is the newest record applied. The header is its batch's, which the batch's records share.
type decided struct {
	header *Header
	record Record
	phi    float64
}

// flushed is one flush of the counter.
type flushed struct {
	cumulative, offered uint64
	rate, mean          float64
	at                  Time
	late                time.Duration // mean age of its units then
}

// included is the newest flush that the decision includes, and when it was appended to the log.
type included struct {
	flushed
	appended Millis
}

// report is a flush that is in the log.
type report struct {
	included
	offset int64
}

// maxPending bounds the reports that await a watermark. Beyond it newer ones replace the newest, so that
// the oldest, which the watermark reaches first, stay.
const maxPending = 8

// youngest is the age at which a counter may be evicted at the latest.
const youngest = time.Minute

// Init makes c and its cell anew for a counter under rule. made is the pod's running number of slots. The
// caller hands cell, fresh and fleet to the same counter's Takes. No check may use the cell yet.
func (c *Counter) Init(cell *Cell, rule *Rule, fresh *Fresh, fleet *Fleet, made uint64, now Time) {
	*c = Counter{cell: cell, rule: rule, fresh: fresh, fleet: fleet, made: made, madeAt: now}
	c.demand.at = now
	if rule.Algorithm == Calendar {
		c.civil = new(resets)
	}
	cell.clear()
	c.sizeOwn(now)
	cell.w[wFlushAt].Store(uint64(now))
	cell.w[wUsed].Store(uint64(now))
	c.findPeriod(now)
	c.expect()
	c.evaluate(now)
}

// sizeOwn sets the own window's length.
func (c *Counter) sizeOwn(now Time) {
	if c.rule.Algorithm != Calendar {
		c.cell.setWidth(c.rule.WindowAt(0), now)
	}
}

// Cell is the cell given to Init.
func (c *Counter) Cell() *Cell { return c.cell }

// Rule is the rule in force.
func (c *Counter) Rule() *Rule { return c.rule }

// Made is the running number given to Init.
func (c *Counter) Made() uint64 { return c.made }

// SetRule puts another amount in force, at once, with all counts kept. Algorithm, period, time zone and (but for
// a token bucket) window are the counter's identity, and stay.
func (c *Counter) SetRule(rule *Rule, now Time) {
	c.rule = rule
	c.sizeOwn(now)
	c.expect()
	c.evaluate(now)
}

// Dirty says that units were admitted whose report is not acknowledged: evicting the counter now would
// lose them.
func (c *Counter) Dirty() bool {
	return c.inflight || c.resend || c.cell.Admitted() != c.base
}

// Blocked says that the counter is exhausted: its record must stay known.
func (c *Counter) Blocked(now Time) bool {
	if c.decision == nil {
		return false
	}
	var v view
	c.cell.read(c.fresh, &v)
	if v.reset != 0 && now >= v.reset {
		return false
	}
	return now < v.blocked || v.curve(v.renew(now, c.fresh), true) <= 0
}

// Evictable says that nothing is lost or let loose by giving the slot away: not dirty, not blocked, and at
// least min(window, 60 s) old.
func (c *Counter) Evictable(now Time) bool {
	at, _ := c.fresh.OwnerTime(now)
	grown := time.Duration(now-c.madeAt) >= min(c.rule.WindowAt(at), youngest)
	return grown && !c.Dirty() && !c.Blocked(now)
}

// Settled says that Flush has nothing to do until the next check. A reset with nothing unreported before it
// splits nothing.
func (c *Counter) Settled() bool {
	return !c.Dirty() && c.cell.w[wCand].Load() == 0 &&
		c.cell.Requests() == c.demand.requests && c.cell.Requests() == c.cell.w[wFlushed].Load()
}

// Record is the newest record applied, with its header; ok is false if the counter is cold.
func (c *Counter) Record() (h Header, r Record, ok bool) {
	if c.decision == nil {
		return h, r, false
	}
	return *c.decision.header, c.decision.record, true
}

// State is what a pod believes of a counter, for people.
type State struct {
	Admitted, Offered, Requests uint64
	Demand                      float64 // requests/s, this pod
	Share                       float64 // of what is left, 0..1
	Left                        float64 // X, units; may be negative
	Unincluded                  float64 // admitted units that the decision does not include
	Learned                     float64 // burst, units
	Cold, Paced, Dirty          bool
	Blocked                     time.Duration // left; 0: not blocked
}

// State describes the counter.
func (c *Counter) State(now Time) State {
	var v view
	c.cell.read(c.fresh, &v)
	n, _ := c.fleet.Pods()
	s := State{
		Admitted: c.cell.Admitted(), Offered: c.cell.Offered(), Requests: c.cell.Requests(),
		Demand: decay(c.demand.rate, time.Duration(now-c.demand.at).Seconds()), Learned: c.burst(now),
		Cold: c.decision == nil, Paced: v.has(flagPaced), Dirty: c.Dirty(), Share: 1 / float64(n), Left: v.m,
	}
	s.Unincluded = float64(int64(s.Admitted - v.inc))
	if c.decision != nil {
		s.Share = v.s
		s.Left = v.curve(v.renew(now, c.fresh)+v.lead, true)
		s.Blocked = max(time.Duration(v.blocked-now), 0)
	}
	return s
}
