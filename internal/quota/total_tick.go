package quota

import (
	"math"
	"slices"
	"time"
)

// Moment is what a partition's owner knows at a tick. One is kept a partition and changed from target
// to target; it is for one goroutine.
type Moment struct {
	Now         Millis
	Pods        int           // n, live pods of the target
	Flush, Tick time.Duration // the fleet's periods
	Uplink      time.Duration // mean time from a pod's flush to its ingest
	scratch     []float64
}

// DefaultUplink is used where no Uplink is known: with half a flush period it makes the snapshot 37.5 ms old.
const DefaultUplink = 12500 * time.Microsecond

// Verdict says what to do with the record that a tick returned.
type Verdict struct {
	Hot  bool // the counter needs a tick each Tick period
	Send bool // put the record in the batch, and call Sent
	// Urgent: pods must hear this one first; it is not one to defer.
	Urgent bool
	// Minor: a counter of an earlier owner that holds next to nothing. Its record may wait while others
	// are renewed.
	Minor bool
	// Distance from the limit, as part of M: those furthest away wait if the budget does not suffice.
	Distance float64
}

const (
	strictTicks   = 2
	admittedTau   = 0.15 // s, of A
	pacingTau     = 0.15 // s, Ttau
	throttlePart  = 0.02 // of M
	throttleOff   = 0.95 // of lr
	liftPacing    = 1.1  // of D
	epsilonPart   = 0.1  // alpha
	leastGrant    = 0.05 // of lr
	hotHorizons   = 4
	wakePart      = 0.75                   // of M
	repeatAfter   = Millis(5000)           // blocked or hot
	blockedQuiet  = time.Second            // blocked for longer: nothing to hear each tick
	longTick      = 100 * time.Millisecond // a pause between ticks beyond it was idle
	demandMargin  = 0.25                   // of the demand sent
	demandAtLeast = 0.1                    // of lr
)

// Tick moves the counter to m.Now and returns the record that a pod should hold now, and what to do
// with it.
func (t *Total) Tick(m *Moment) (Record, Verdict) {
	t.advance(m.Now)
	dt := t.elapsed(m)
	demand, mean, burst := t.present(m)
	if dt > 0 {
		t.smooth(dt, demand)
	}
	r := t.record(m, demand, mean, burst, dt)
	v := t.verdict(m, &r)
	if dt > 0 {
		t.acc, t.late, t.ticked = 0, 0, m.Now
	}
	return r, v
}

// elapsed is the time since the last tick, s. A pause is taken as idle: the estimates fade over it.
func (t *Total) elapsed(m *Moment) float64 {
	if t.ticked == 0 {
		return m.Tick.Seconds()
	}
	dt := time.Duration(m.Now-t.ticked) * time.Millisecond
	if pause := dt - longTick; pause > 0 {
		t.admitted *= math.Exp(-pause.Seconds() / admittedTau)
		t.unseen *= math.Exp(-pause.Seconds() / admittedTau)
		t.demand *= math.Exp(-pause.Seconds() / t.demandTau())
		dt = longTick
	}
	return dt.Seconds()
}

func (t *Total) demandTau() float64 { return min(max(10/t.rule.RateAt(t.now), 0.05), 2) }

// present fills m.scratch with each active pod's demand now, units/s, and returns their sum, the mean
// cost of a request and the mean learned burst.
func (t *Total) present(m *Moment) (demand, mean, burst float64) {
	m.scratch = m.scratch[:0]
	var requests float64
	learned := 0
	for i := range t.pods.list {
		p := &t.pods.list[i]
		if p.burst > 0 {
			burst += p.burst * fade(time.Duration(m.Now-p.appended)*time.Millisecond)
			learned++
		}
		if p.rate == 0 {
			continue
		}
		rate := present(p.rate, p.appended, m.Now, m.Flush)
		if rate == 0 {
			continue
		}
		m.scratch = append(m.scratch, rate*p.mean)
		demand += rate * p.mean
		requests += rate
	}
	if learned > 0 {
		burst /= float64(learned)
	}
	mean = 1
	if requests > 0 {
		mean = demand / requests
	}
	return demand, mean, burst
}

func (t *Total) smooth(dt, demand float64) {
	part := 1 - math.Exp(-dt/admittedTau)
	t.admitted += part * (t.acc/dt - t.admitted)
	t.unseen += part * (t.late/dt - t.unseen)
	t.demand += (1 - math.Exp(-dt/t.demandTau())) * (demand - t.demand)
	if t.demand < leastDemand {
		t.demand = 0
	}
	t.recent[1], t.recent[0] = t.recent[0], t.acc
}

// record computes the decision: what is left and how it regrows, and whether pods pace themselves.
func (t *Total) record(m *Moment, demand, mean, burst, dt float64) Record {
	amount, rate := t.rule.Amount(), t.rule.RateAt(t.now)
	s := t.content.sum()
	r := Record{
		PolicyVersion: t.rule.PolicyVersion, Amount: amount, Rate: rate, Content: s, Remaining: amount - s,
		Demand: demand / mean, MeanCost: mean, Burst: burst,
	}
	strict := t.rule.strict(m.Pods)
	if strict {
		for _, x := range t.recent[:strictTicks] {
			r.Remaining -= x
		}
	}
	if r.Remaining <= 0 {
		r.BlockedFor = max(t.content.until(amount), time.Millisecond)
	}
	h1, h2 := knots(float64(t.rule.WindowAt(t.now)))
	if c, ok := t.content.(*calendar); ok {
		r.ResetIn = c.resetIn()
	} else {
		r.Expire1, r.Expire2 = t.content.regrowth(time.Duration(h1), time.Duration(h2))
	}
	H := horizon(m.Flush, m.Tick)
	t.pace(&r, demand, dt, H, h1/1e9, r.Remaining-t.unseen-t.admitted*m.Uplink.Seconds())
	t.share(&r, m, demand, strict)
	return r
}

// pace decides on overload and on G. net is what is left less what is admitted and not yet known.
func (t *Total) pace(r *Record, demand, dt, H, h1, net float64) {
	switch {
	case t.throttled:
		t.throttled = t.demand >= throttleOff*r.Rate
	default:
		t.throttled = t.demand > r.Rate && net <= throttlePart*r.Amount
	}
	if !t.throttled {
		t.integral = 0
		r.Grant = max(0, r.Remaining+r.Expire1*H/h1) / H
		return
	}
	net += t.admitted * t.content.lag().Seconds()
	t.integral = min(max(t.integral+2*dt*net/r.Amount, -0.2), 0.5)
	r.Grant = max(0, r.Rate*(1+t.integral)+net/pacingTau)
	r.Paced = r.Grant < liftPacing*demand
}

// share computes epsilon, the water level and the sum of shares: every pod derives its own part from its own
// demand.
func (t *Total) share(r *Record, m *Moment, demand float64, strict bool) {
	n := float64(max(m.Pods, 1))
	grant := max(r.Grant, leastGrant*r.Rate)
	r.Epsilon = epsilonPart * max(r.Rate, grant) / n
	active := float64(len(m.scratch))
	r.Level, r.ShareSum = math.Inf(1), demand+active*r.Epsilon
	if r.ShareSum >= grant && active > 0 {
		r.Level = waterLevel(m.scratch, r.Epsilon, grant)
		r.ShareSum = 0
		for _, d := range m.scratch {
			r.ShareSum += min(d+r.Epsilon, r.Level)
		}
	}
	if strict {
		r.ShareSum += max(n-active, 0) * min(r.Epsilon, r.Level)
	} else if math.IsInf(r.Level, 1) {
		// Where next to nobody is active, shares are even: else every idle pod would take what the few leave.
		r.ShareSum = max(r.ShareSum, n*r.Epsilon)
	}
}

// waterLevel is the v at which the sum of min(d+eps, v) is grant. It sorts demands.
func waterLevel(demands []float64, eps, grant float64) float64 {
	slices.Sort(demands)
	left := grant
	for i, d := range demands {
		if v := left / float64(len(demands)-i); v <= d+eps {
			return v
		}
		left -= d + eps
	}
	return math.Inf(1)
}

// verdict decides whether pods need the record (ALGORITHM 9).
func (t *Total) verdict(m *Moment, r *Record) Verdict {
	wasHot := t.hot
	t.force = t.force || t.heir && t.acc > 0
	active := len(m.scratch) > 0 || t.acc > 0
	near := r.Remaining < hotHorizons*max(r.Demand*r.MeanCost*horizon(m.Flush, m.Tick), r.MeanCost)
	quiet := r.BlockedFor > blockedQuiet
	t.hot = (r.Paced || t.throttled || near && active) && !quiet
	v := Verdict{Hot: t.hot, Distance: r.Remaining / r.Amount}
	must := t.hot || t.moved(r) || t.wake && r.Remaining < wakePart*r.Amount ||
		(quiet || near && active) && t.now-t.sentAt >= repeatAfter ||
		(t.force || t.reset) && t.hasSent
	v.Minor = !must && t.force && (r.Remaining < r.Amount || active)
	v.Send = must || v.Minor
	v.Urgent = must && (!wasHot && t.hot || t.force || t.reset)
	if !v.Send {
		t.force, t.reset, t.wake = false, false, false
	}
	return v
}

// moved says that a pod which goes by the record sent last, or by none, would be wrong.
func (t *Total) moved(r *Record) bool {
	sent := Record{Remaining: r.Amount}
	if t.hasSent {
		sent = t.sent
	}
	d, was := r.Demand*r.MeanCost, sent.Demand*one(sent.MeanCost)
	return math.Abs(r.Remaining-sent.Remaining) > renewMargin*r.Amount ||
		math.Abs(d-was) > max(demandAtLeast*r.Rate, demandMargin*was) ||
		t.hasSent && (r.Paced != sent.Paced || (r.BlockedFor > 0) != (sent.BlockedFor > 0))
}

// Sent notes that r went out. A record that waits for the budget is not sent; the next tick offers a newer
// one.
func (t *Total) Sent(r *Record) {
	t.sent, t.sentAt, t.hasSent = *r, t.now, true
	t.force, t.reset, t.wake, t.heir = false, false, false, false
}
