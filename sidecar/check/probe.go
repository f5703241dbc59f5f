package check

import (
	"slices"

	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/internal/quota"
	"github.com/weirproxy/weir/sidecar/match"
)

// Probe checks requests as Check does, for one goroutine, and shows what each rate said: for a simulator. A request that
// comes again and again is matched once.
type Probe struct {
	checker *Checker
	snap    *Snapshot
	scratch scratch
	outs    []quota.Outcome
	result  quota.Result
	settled bool
	passes  bool
}

// Probe returns a probe of its own source of chance.
func (c *Checker) Probe(seed uint64) *Probe {
	return &Probe{checker: c, scratch: scratch{rnd: quota.NewRand(seed), hint: uint32(seed)}} //nolint:gosec // any bits
}

// Match finds the counters of a request, which must not change until the next Match.
func (p *Probe) Match(req *match.Request) {
	p.snap = p.checker.snapshot.Load()
	p.scratch.matched.Hits = p.scratch.matched.Hits[:0]
	if p.snap == nil {
		p.settled, p.passes = true, false
		return
	}
	req.Random = p.scratch.rnd.Uint64()
	p.snap.Matcher.Match(req, &p.scratch.matched)
	var a Answer
	p.settled = p.checker.settled(p.snap, &p.scratch, &a)
	p.passes = p.scratch.matched.Refused == nil
}

// Stale says that other policies are in force than when Match looked.
func (p *Probe) Stale() bool { return p.snap != p.checker.snapshot.Load() }

// Check decides on the request matched last, charges it, and returns whether it passes.
func (p *Probe) Check() bool {
	s := &p.scratch
	s.reset()
	if p.settled {
		return p.passes
	}
	pin := p.checker.config.Ledger.Pin(s.hint)
	defer pin.Unpin()
	p.checker.take(p.snap, s)
	if len(s.takes) == 0 {
		return true
	}
	p.outs = s.outcomes()
	p.result = quota.Decide(p.checker.config.Clock(), s.takes, &s.rnd, p.outs)
	p.checker.mark(s, p.outs, p.result)
	return p.result.OK
}

// Hits are the counters that Match found, for reading alone, until the next Match.
func (p *Probe) Hits() []match.Hit { return p.scratch.matched.Hits }

// Charged is the counter that the last Check asked for a hit: its own, or the limit's overflow counter. False: it found
// no room at all, and was not asked.
func (p *Probe) Charged(hit int) (wirev1.ID, bool) {
	if i := slices.Index(p.scratch.hits, hit); !p.settled && i >= 0 {
		return p.scratch.slots[i].ID, true
	}
	return wirev1.ID{}, false
}

// Refused reports whether the last Check found the rate of a hit exhausted; a hit without a slot never is.
func (p *Probe) Refused(hit int) bool {
	if p.settled {
		return false
	}
	for i, h := range p.scratch.hits {
		if h == hit {
			return !p.outs[i].OK
		}
	}
	return false
}
