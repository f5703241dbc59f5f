package partition

import (
	"time"

	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/internal/quota"
)

// resolve finds the rule in force for a counter whose stored state is known, and starts it.
func (p *Partition) resolve(c *counter, now quota.Time) {
	if c.identity == nil {
		c.phase = wanting
		p.wanted = append(p.wanted, c)
		return
	}
	id, err := wirev1.DecodeIdentity(c.identity)
	if err != nil { // it was decoded before
		return
	}
	c.policy, c.version = id.Policy, -1
	if pol := p.policies.Lookup(id.Policy); pol != nil {
		c.policy, c.version = pol.Name, pol.Version // one string for all
	}
	r, ok := p.policies.Resolve(id)
	switch {
	case !ok:
		c.phase = parked
	case r.Unlimited:
		// What the store holds of it ends here: if it is counted again, it begins empty.
		c.phase, c.total, c.meter, c.whole = exempt, nil, nil, true
		p.drop(c, new(uint64))
	default:
		c.limit, c.maxRate = p.limitOf(r.Rate), maxRequests*float64(max(r.Limit.Cost.Max, r.Limit.Cost.Default, 1))
		p.begin(c, r.Rule, now)
	}
}

// begin makes the counter live under a rule, with its stored state or with what it counted so far.
func (p *Partition) begin(c *counter, rule *quota.Rule, now quota.Time) {
	at := p.clock.now(now)
	switch {
	case c.total == nil:
		c.total = quota.NewTotal(rule, at)
		if len(c.saved) > 0 {
			c.total.Restore(c.saved, at)
			c.saved = nil
			p.inherit(c, at)
		}
		if p.recent(now, rule.WindowAt(at)) {
			c.total.Renew()
		}
	case c.total.Rule() != rule:
		p.reamount(c, rule, at)
	}
	c.phase = live
	p.release(c, now)
	p.schedule.soon(c)
}

// recent reports whether pods may hold what an earlier owner said of a counter met now.
func (p *Partition) recent(now quota.Time, window time.Duration) bool {
	return !p.live || time.Duration(now-p.liveSince) < window+keepTotals
}

// resolveAgain takes up a change of the counter's policy.
func (p *Partition) resolveAgain(c *counter, now quota.Time) {
	if c.phase == loading || c.phase == wanting {
		return
	}
	version := int64(-1)
	if pol := p.policies.Lookup(c.policy); pol != nil {
		version = pol.Version
	}
	if version != c.version {
		p.resolve(c, now)
	}
}
