package partition

import (
	"slices"

	"github.com/weirproxy/weir/internal/quota"
)

// surveyStep is how many counters one step of a survey looks at, a fraction of a millisecond.
const surveyStep = 2048

// Survey is a walk over all counters of a partition by steps, so that no decision waits for it. Make it with
// NewSurvey; it is for one goroutine at a time. A counter that comes or goes meanwhile may be missed.
type Survey struct {
	counters int // kept of each limit
	next     int
	limits   map[*limit]*surveyed
}

type surveyed struct {
	counters, over  int
	offered, beyond float64
	top             []full // the fullest last
}

// full is a counter and how full it is.
type full struct {
	c    *counter
	part float64
}

// NewSurvey keeps up to so many counters of each limit.
func NewSurvey(counters int) *Survey {
	return &Survey{counters: counters, limits: map[*limit]*surveyed{}}
}

// Survey takes the next step of s. Once done it returns what it found, in no order.
func (p *Partition) Survey(s *Survey, now quota.Time) (views []LimitView, done bool) {
	at := p.clock.now(now)
	to := min(s.next+surveyStep, len(p.all))
	for ; s.next < to; s.next++ {
		if c := p.all[s.next]; c.phase == live {
			s.take(c, at)
		}
	}
	if s.next < len(p.all) {
		return nil, false
	}
	return p.surveyed(s, now), true
}

func (s *Survey) take(c *counter, at quota.Millis) {
	x := s.limits[c.limit]
	if x == nil {
		x = &surveyed{}
		s.limits[c.limit] = x
	}
	held, amount, demand := c.total.SumAt(at), c.total.Rule().Amount(), c.total.Demand()
	x.counters++
	if excess(held, amount) > 0 {
		x.over++
	}
	x.offered += demand
	x.beyond += beyond(c.total, held, demand, at)
	x.keep(full{c, held / amount}, s.counters)
}

// beyond is how much of the demand a counter will refuse, units/s: what exceeds the rate of one that is overloaded,
// all of it for a period that is used up.
func beyond(t *quota.Total, held, demand float64, at quota.Millis) float64 {
	r := t.Rule()
	switch {
	case r.Algorithm == quota.Calendar && held >= r.Amount():
		return demand
	case r.Algorithm != quota.Calendar && t.Throttled():
		return max(demand-r.RateAt(at), 0)
	}
	return 0
}

// keep puts a counter among the fullest, if it is.
func (x *surveyed) keep(f full, most int) {
	if len(x.top) == most && (most == 0 || f.part <= x.top[0].part) {
		return
	}
	if slices.ContainsFunc(x.top, func(k full) bool { return k.c == f.c }) {
		return
	}
	if len(x.top) == most {
		x.top = slices.Delete(x.top, 0, 1)
	}
	i := slices.IndexFunc(x.top, func(k full) bool { return k.part > f.part })
	if i < 0 {
		i = len(x.top)
	}
	x.top = slices.Insert(x.top, i, f)
}

func (p *Partition) surveyed(s *Survey, now quota.Time) []LimitView {
	at := p.clock.now(now)
	views := make([]LimitView, 0, len(s.limits))
	for l, x := range s.limits {
		v := LimitView{
			Limit: l.policy + "/" + l.name, Rate: l.rate, Mode: l.mode, Owners: []string{p.cfg.Instance},
			Counters: x.counters, Over: x.over, Offered: x.offered,
			Fullest: l.peak.value(now), OverUnits: l.units, OverSeconds: l.seconds, Top: []CounterView{},
		}
		if x.offered > 0 {
			v.Refused = x.beyond / x.offered
		}
		for _, f := range x.top {
			if f.c.phase == live {
				v.Top = append(v.Top, f.c.view(at))
			}
		}
		views = append(views, v)
	}
	return views
}

func (c *counter) view(at quota.Millis) CounterView {
	return CounterView{
		ID: c.id.String(), Target: c.target.name, CountedBy: countedBy(c.identity),
		Content: c.total.SumAt(at), Amount: c.total.Rule().Amount(), Offered: c.total.Demand(),
	}
}
