package measure

import "github.com/weirproxy/weir/internal/quota"

// period holds what was admitted since the civil period began.
type period struct {
	rule  *quota.Rule
	start quota.Millis // owner time at the run's start
	now   int64
	end   int64
}

func (p *period) setRule(r *quota.Rule) {
	p.rule = r
	p.end = p.endAt(p.now)
}

func (p *period) scale() float64 { return 1 }
func (p *period) until() int64   { return p.end }

func (p *period) advance(l *level, ms int64) {
	p.now = ms
	if ms < p.end {
		return
	}
	p.end = p.endAt(ms)
	l.clear()
}

func (p *period) add(l *level, mine, exact float64) {
	l.mine += mine
	l.exact += exact
}

func (p *period) endAt(ms int64) int64 {
	_, end := quota.PeriodAt(p.rule.Period, p.rule.Location, p.start+quota.Millis(ms))
	return int64(end - p.start)
}
