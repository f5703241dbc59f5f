package partition

import (
	"time"

	"github.com/weirproxy/weir/internal/quota"
)

const (
	sweepRound = 10    // ticks in which all counters are visited
	sweepMost  = 20000 // counters a tick
)

// sweep visits some of the counters: quiet ones whose record no longer holds are decided again, and
// idle ones are forgotten.
func (p *Partition) sweep(now quota.Time) {
	at := p.clock.now(now)
	n := min(len(p.all), max(len(p.all)/sweepRound+1, 64), sweepMost)
	for range n {
		if len(p.all) == 0 {
			return
		}
		if p.cursor >= len(p.all) {
			p.cursor = 0
		}
		c := p.all[p.cursor]
		if p.idle(c, at, now) {
			p.forget(c) // another takes its place
			continue
		}
		p.cursor++
		if c.phase == live && !c.active && !c.wheeled && c.total.Due() <= at {
			p.schedule.soon(c)
		}
	}
}

// idle: nothing that the counter holds can matter any more.
func (p *Partition) idle(c *counter, at quota.Millis, now quota.Time) bool {
	if len(c.waiting) > 0 || time.Duration(now-c.seen) < keepTotals {
		return false
	}
	switch c.phase {
	case loading:
		return false
	case live:
		return !c.dirty && !c.flying && c.total.Idle(at)
	case parked:
		return c.total == nil || !c.dirty && !c.flying && c.total.Idle(at)
	default:
		return true
	}
}

func (p *Partition) forget(c *counter) {
	c.phase = gone
	delete(p.counters, c.id)
	last := len(p.all) - 1
	p.all[c.index] = p.all[last]
	p.all[c.index].index = c.index
	p.all[last] = nil
	p.all = p.all[:last]
	c.target.counters--
	if c.folds {
		for id, to := range p.folded {
			if to == c {
				delete(p.folded, id)
			}
		}
	}
}
