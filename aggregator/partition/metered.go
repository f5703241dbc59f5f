package partition

import (
	"slices"
	"time"

	"github.com/weirproxy/weir/internal/quota"
)

const (
	meterFrom   = 0.8 // of the amount: a counter that holds so much is metered
	meterBelow  = 0.4 // and one that holds less no more
	meterMost   = 4096
	meterPeriod = quota.Time(time.Second)
)

// watch looks at how full a counter is that was just decided as r says. One that is nearly full gets a meter; of one
// without, what the owner knows is what it holds.
func (p *Partition) watch(c *counter, r *quota.Record, now quota.Time) {
	at := p.out.moment.Now
	if c.meter == nil {
		full := r.Content / r.Amount
		if full < meterFrom || !p.meter(c, r.Amount, at) {
			c.limit.peak.note(full, now)
			return
		}
	}
	if l, ok := c.meter.(*level); ok {
		l.take(r.Content, at)
	}
}

// meter gives a counter a meter that knows all that the counter does. At the bound it gets none.
func (p *Partition) meter(c *counter, amount float64, at quota.Millis) bool {
	if len(p.metered) >= meterMost {
		return false
	}
	rule := c.total.Rule()
	if rule.Algorithm == quota.SlidingWindow {
		f := newFill(rule.WindowAt(at), amount, at)
		c.total.Slices(func(began quota.Millis, n uint64) { f.add(began, began, at, float64(n), 0) })
		c.meter = f
	} else {
		c.meter = &level{amount: amount, at: at}
	}
	p.metered = append(p.metered, c)
	return true
}

// metering hands new units of a counter to its meter.
func (p *Partition) metering(c *counter, u *quota.Usage, n uint64, now quota.Time) {
	if c.meter != nil && n > 0 {
		c.meter.add(begins(u), ends(u), p.clock.now(now), float64(n), c.total.Sum())
	}
}

// inherit keeps what an earlier owner let a counter hold from being seen as over once more.
func (p *Partition) inherit(c *counter, at quota.Millis) {
	amount := c.total.Rule().Amount()
	if held := c.total.SumAt(at); held > amount && p.meter(c, amount, at) {
		c.meter.setAmount(amount, held, at)
	}
}

// reamount puts a counter under another rule. What it holds above a lowered amount is not over it.
func (p *Partition) reamount(c *counter, rule *quota.Rule, at quota.Millis) {
	held, was, amount := c.total.SumAt(at), c.total.Rule().Amount(), rule.Amount()
	if c.meter == nil && held > amount {
		p.meter(c, was, at)
	}
	if c.meter != nil && amount != was {
		c.meter.setAmount(amount, held, at)
	}
	c.total.SetRule(rule)
}

// settle takes up each second what meters saw, and takes them from counters that need them no more.
func (p *Partition) settle(now quota.Time) {
	if now < p.settleAt {
		return
	}
	p.settleAt = now + meterPeriod
	at := p.clock.now(now)
	p.metered = slices.DeleteFunc(p.metered, func(c *counter) bool {
		if c.phase != live || c.meter == nil {
			c.meter = nil
			return true
		}
		held := c.total.SumAt(at)
		o := c.meter.settle(at, held)
		c.limit.peak.note(o.fullest, now)
		c.limit.units += o.units
		c.limit.seconds += o.seconds
		if held >= meterBelow*c.total.Rule().Amount() || !c.meter.done() {
			return false
		}
		c.meter = nil
		return true
	})
}
