package measure

import "github.com/weirproxy/weir/internal/quota"

// RateMeter follows all counters of one rate of one limit. It is not safe for concurrent use.
type RateMeter struct {
	limit, title string
	plan         *plan
	all          *tally
	meters       map[uint64]*Meter
}

// NewRateMeter returns one without counters: limit is the limit's name, title the rate as a person writes it.
func NewRateMeter(limit, title string, o *Options) *RateMeter {
	p := newPlan(o)
	return &RateMeter{limit: limit, title: title, plan: p, all: newTally(p), meters: make(map[uint64]*Meter)}
}

// Counter returns the meter of a counter, under whatever key the caller knows it by, made empty with rule if it is
// not there. It lasts as long as the RateMeter: there are as many as the run has counters.
func (r *RateMeter) Counter(key uint64, rule *quota.Rule) *Meter {
	m := r.meters[key]
	if m == nil {
		m = newMeter(rule, r.plan, r.all)
		r.meters[key] = m
	}
	return m
}

// Each calls f with every counter there is, in no particular order: for a change of the limit.
func (r *RateMeter) Each(f func(key uint64, m *Meter)) {
	for key, m := range r.meters {
		f(key, m)
	}
}

// Result is what was measured until the run's end, which no request may follow.
func (r *RateMeter) Result() Rate {
	for _, m := range r.meters {
		m.finish()
	}
	return Rate{Limit: r.limit, Title: r.title, Values: r.all.values(), Counters: r.all.counters, Series: r.all.series()}
}
