package quota

import (
	"math"
	"time"
)

// Total is one counter at its owner: what was admitted by whom, and what pods are told of it. It is
// for one goroutine. Use NewTotal.
type Total struct {
	rule    *Rule
	content content
	now     Millis
	pods    pods
	swept   Millis
	total   uint64 // units since the counter was first met

	acc       float64 // units since the last tick
	late      float64 // the same times their age when they were reported, unit seconds
	recent    [2]float64
	ticked    Millis  // last tick; 0: none
	admitted  float64 // A, units/s
	unseen    float64 // units admitted and not yet reported: A times their mean age at the report
	demand    float64 // D smoothed, units/s
	integral  float64
	throttled bool

	sent     Record
	sentAt   Millis
	hasSent  bool
	hot      bool
	force    bool // send with the next tick
	heir     bool // pods may hold a record of an earlier owner, which headers of this one do not renew
	wake     bool // a pod that may hold no record reported
	reset    bool
	stateful bool // total changed since the last export
}

// NewTotal returns an empty counter.
func NewTotal(rule *Rule, now Millis) *Total {
	return &Total{rule: rule, content: newContent(rule, now), now: now, swept: now}
}

// Rule is the rule in force.
func (t *Total) Rule() *Rule { return t.rule }

// Sum is S at the last tick or ingest, units: what the window, bucket or period holds.
func (t *Total) Sum() float64 { return t.content.sum() }

// Left is R, units; negative if the limit was exceeded, or lowered below what is used.
func (t *Total) Left() float64 { return t.rule.Amount() - t.content.sum() }

// Admitted is all units counted since the counter was first met.
func (t *Total) Admitted() uint64 { return t.total }

// Throttled says that the counter is overloaded.
func (t *Total) Throttled() bool { return t.throttled }

// SetRule puts another amount in force, with all counts kept. Pods that hold a record are sent one with
// the next tick.
func (t *Total) SetRule(rule *Rule) {
	t.rule = rule
	t.content.setRule(rule)
	t.force = t.force || t.hasSent
}

// Renew makes the next tick send a record, or, of an untouched counter, the first tick after usage came:
// after a takeover pods hold records of another owner.
func (t *Total) Renew() { t.force, t.heir = true, true }

const (
	// silentLong: a pod that was silent for longer may hold no record.
	silentLong = Millis(1000)
	// rememberPods: how long `last` is kept at least.
	rememberPods = time.Minute
	urgentPart   = 0.02 // of M
	urgentGap    = Millis(5)
)

// Ingest takes one entry in, in log order. count is false for an offset that the restored state includes
// already: it only teaches what the pod reported last. It returns how many units are new, and whether so
// many came that the counter should be ticked now. An entry that is repeated, late or out of order counts
// nothing twice.
func (t *Total) Ingest(u *Usage, count bool) (increase uint64, urgent bool) {
	t.advance(u.Appended)
	k := podKey{u.Pod, u.Epoch, u.Made}
	p := t.pods.find(k)
	known := p != nil
	if !known {
		p = t.pods.add(k)
		p.last = u.Base
		t.pods.supersede(k)
	}
	silent := !known || u.Appended-p.appended > silentLong
	if u.Cumulative > p.last {
		increase = u.Cumulative - p.last
		p.last = u.Cumulative
	}
	from, to := u.window(t.rule.Strict)
	if known {
		from = min(max(from, p.to), to)
	}
	p.to = to
	steady := p.steady(from, to)
	if !known || u.Offset > p.offset {
		p.rate, p.mean, p.burst = u.Demand, one(u.MeanCost), u.Burst
		p.appended, p.offset = u.Appended, u.Offset
	}
	if !count {
		return 0, false
	}
	t.wake = t.wake || silent
	if increase > 0 {
		even := min(increase, steady)
		t.content.add(from, to, even, u.Split)
		if even < increase {
			t.content.add(to, to, increase-even, u.Split)
		}
		t.total += increase
		t.stateful = true
	}
	t.acc += float64(increase)
	t.late += float64(increase) * u.lateness()
	return increase, t.isUrgent()
}

func (t *Total) isUrgent() bool {
	m := t.rule.Amount()
	r := m
	if t.hasSent {
		r = t.sent.Remaining
	}
	return !t.throttled && t.acc > urgentPart*m && t.acc > r/4 && t.now-t.ticked >= urgentGap
}

func (t *Total) advance(now Millis) {
	if now <= t.now {
		return
	}
	t.now = now
	if t.content.advance(now) {
		t.reset, t.integral = true, 0
	}
	if keep := t.remember(); now-t.swept > keep/8 {
		t.pods.expire(now - keep)
		t.swept = now
	}
}

func (t *Total) remember() Millis {
	return Millis(max(t.rule.WindowAt(t.now), rememberPods) / time.Millisecond)
}

// Idle says that the counter holds nothing and nobody reported for max(window, 60 s): it may be
// forgotten.
func (t *Total) Idle(now Millis) bool {
	t.advance(now)
	t.pods.expire(now - t.remember())
	return len(t.pods.list) == 0 && t.content.sum() == 0 && !t.throttled
}

// Keep is how long the stored state must be kept from now on: until the window is empty and 60 s more.
func (t *Total) Keep() time.Duration {
	if c, ok := t.content.(*calendar); ok {
		return c.resetIn() + rememberPods
	}
	return t.rule.WindowAt(t.now) + rememberPods
}

// Due is the owner time at which Tick is needed at the latest, if no usage comes before: now for a hot
// counter; far away for one that nothing will change.
func (t *Total) Due() Millis {
	const never = Millis(math.MaxInt64)
	if t.hot || t.throttled || t.force || t.wake || t.reset || t.demand > 0 || t.acc > 0 {
		return t.now
	}
	if !t.hasSent {
		return never
	}
	if t.sent.BlockedFor > 0 {
		return min(t.sentAt+repeatAfter, t.now+Millis(t.content.until(t.rule.Amount())/time.Millisecond))
	}
	// What was sent must stay true within the margin: as the content leaves, R grows.
	target := t.rule.Amount() - t.sent.Remaining - renewMargin*t.rule.Amount()
	if target <= 0 {
		return never
	}
	return t.now + max(Millis(t.content.until(target)/time.Millisecond), 1)
}
