package measure

import (
	"time"

	"github.com/weirproxy/weir/internal/quota"
)

// nearlyFull is the part of the limit below which a true window has room: to refuse then is a false denial.
const nearlyFull = 0.98

// Meter follows one counter of one rate: what the measured limiter admitted, and beside it an exact central limiter
// on the same requests. Times are since the run's start; one that lies before the last is taken as the last. It is
// not safe for concurrent use, nor are meters of one RateMeter with each other.
type Meter struct {
	plan    *plan
	all     *tally
	content content
	level   level

	amount float64 // the limit or burst, scaled
	scale  float64 // of a unit in level
	rate   float64 // units/s

	now    int64 // ms
	look   int64 // when to look at the content though nobody asks, ms
	front  *front
	filled bool // once
	begun  bool
}

// NewMeter returns the meter of an empty counter.
func NewMeter(rule *quota.Rule, o *Options) *Meter {
	p := newPlan(o)
	return newMeter(rule, p, newTally(p))
}

func newMeter(rule *quota.Rule, p *plan, all *tally) *Meter {
	m := &Meter{plan: p, all: all, content: newContent(rule, p), look: p.look(0)}
	m.scale = m.content.scale()
	m.setAmount(rule)
	all.counters++
	return m
}

// setAmount: a limit below one unit is taken as one where something is divided by it.
func (m *Meter) setAmount(rule *quota.Rule) {
	m.amount = max(rule.Amount(), 0) * m.scale
	m.rate = rule.RateAt(m.plan.start + quota.Millis(m.now))
	if m.front != nil {
		m.front.setRate(m.rate)
	}
}

// SetRule changes the amounts of the rate (same algorithm, window and period) from at on. The content stays. What
// was admitted before and still counts is not over the new limit, but what is admitted on top of it is: until it has
// expired, over is the excess over whichever is more.
func (m *Meter) SetRule(at time.Duration, rule *quota.Rule) {
	m.advance(at)
	before := m.rate
	m.content.setRule(rule)
	m.setAmount(rule)
	m.level.carried = m.level.mine
	if m.begun {
		m.all.allow(m.now, m.rate-before)
	}
	m.all.fullest(m.now, m.fill())
}

// Exact says whether an exact central limiter would admit the units. It charges nothing.
func (m *Meter) Exact(at time.Duration, units uint64) bool {
	m.advance(at)
	return m.level.exact+float64(units)*m.scale <= m.amount
}

// Offer counts a request to a pod. exact says whether an exact limiter admitted it, which all rates of the request
// must have allowed (Exact), a what the measured one answered.
func (m *Meter) Offer(at time.Duration, pod int, units uint64, exact bool, a Answer) {
	m.advance(at)
	if !m.begun {
		m.begun = true
		m.all.allowFirst(m.now, m.rate)
	}
	var mine, ideal float64
	u := float64(units)
	if exact {
		ideal = u
	}
	b := m.all.at(m.now)
	switch a {
	case Admitted:
		mine = u
		m.all.offer(b, pod, u, u)
	case Refused:
		m.all.offer(b, pod, u, 0)
		if m.level.mine < nearlyFull*m.amount && m.level.mine+u*m.scale <= m.amount {
			m.all.falselyRefused += u
		}
	}
	if mine > 0 || ideal > 0 {
		m.all.charge(b, m.now, m.content.until(), mine, ideal)
		m.content.add(&m.level, mine*m.scale, ideal*m.scale)
	}
	if mine > 0 {
		m.admitted(b, mine)
	}
}

// admitted judges the content that a request has just raised.
func (m *Meter) admitted(b *bin, units float64) {
	b.fill = max(b.fill, m.fill())
	m.all.excess(m.now, m.over())
	switch {
	case m.front != nil:
		m.front.add(m.now, units)
	case !m.filled && m.level.mine+m.scale > m.amount: // no further unit fits
		m.filled = true
		m.front = newFront(m.now, m.rate)
	}
}

// fill is the content over the limit.
func (m *Meter) fill() float64 { return m.level.mine / max(m.amount, m.scale) }

// over is how far the content exceeds what it may be, over the limit; negative below it.
func (m *Meter) over() float64 {
	return (m.level.mine - max(m.amount, m.level.carried)) / max(m.amount, m.scale)
}

func (m *Meter) advance(at time.Duration) { m.advanceTo(int64(at / grain)) }

func (m *Meter) advanceTo(ms int64) {
	if ms <= m.now {
		return
	}
	for m.look <= ms {
		m.lookAt(ms)
	}
	m.content.advance(&m.level, ms)
	m.now = ms
	if m.front != nil && m.front.advance(ms) {
		m.endFront()
	}
}

// lookAt notes the content where the next bin or outage begins, and passes over the rest until ms if nothing is
// left.
func (m *Meter) lookAt(ms int64) {
	m.content.advance(&m.level, m.look)
	m.now = m.look
	if m.level.mine == 0 {
		m.look = m.plan.look(ms)
		return
	}
	m.all.fullest(m.now, m.fill())
	if m.plan.outageAfter(m.now).from == m.now {
		m.all.outageOver = max(m.all.outageOver, m.over())
	}
	m.look = m.plan.look(m.look)
}

func (m *Meter) endFront() {
	m.all.enforce = max(m.all.enforce, m.front.took())
	m.front = nil
}

// finish takes the counter to the run's end.
func (m *Meter) finish() {
	m.advanceTo(m.plan.steady.to)
	if m.front != nil {
		m.front.advance(m.now + 2*frontMillis)
		m.endFront()
	}
}

// Result is what was measured until the run's end, which no request may follow.
func (m *Meter) Result() Values {
	m.finish()
	return m.all.values()
}
