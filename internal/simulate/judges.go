package simulate

import (
	"time"

	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/internal/quota"
	"github.com/weirproxy/weir/internal/simulate/measure"
	"github.com/weirproxy/weir/internal/simulate/scenario"
	"github.com/weirproxy/weir/sidecar/match"
)

// judges hold what measures each rate of the policy.
type judges struct {
	rates    []*judge
	counters map[wirev1.ID]*judged
}

// judge measures one rate.
type judge struct {
	limit string
	index int
	meter *measure.RateMeter
}

// judged is one counter.
type judged struct {
	identity []byte
	rule     *quota.Rule
	meter    *measure.Meter
}

func newJudges(w *world) judges {
	j := judges{counters: map[wirev1.ID]*judged{}}
	o := &measure.Options{Start: startDate, Steady: w.s.SteadyFrom, End: w.s.Duration, Outages: outages(w.s)}
	for _, l := range w.policies.policy.Limits {
		for i, r := range l.Rates {
			j.rates = append(j.rates, &judge{l.Name, i, measure.NewRateMeter(l.Name, r.Title, o)})
		}
	}
	return j
}

// outages are the faults during which local shares count.
func outages(s *scenario.Scenario) []measure.Span {
	var out []measure.Span
	for i := range s.Faults {
		f := &s.Faults[i]
		switch f.Kind {
		case scenario.AggregatorDown, scenario.BrokerDown, scenario.StoreDown:
			out = append(out, measure.Span{From: f.At + outageBegins, To: f.At + f.For})
		}
	}
	return out
}

// outageBegins is when, into a fault, its measures begin.
const outageBegins = 300 * time.Millisecond

// of is the meter of a counter.
func (j *judges) of(h *match.Hit) *measure.Meter {
	if c := j.counters[h.ID]; c != nil {
		return c.meter
	}
	for _, r := range j.rates {
		if r.limit == h.Limit.Name && r.index == h.Rate.Index {
			c := &judged{append([]byte(nil), h.Identity...), h.Rule, r.meter.Counter(h.ID.Lo, h.Rule)}
			j.counters[h.ID] = c
			return c.meter
		}
	}
	return nil
}

// change puts the counters under the amounts of the policies now in force.
func (j *judges) change(w *world) {
	for _, c := range j.counters {
		id, err := wirev1.DecodeIdentity(c.identity)
		if err != nil {
			continue
		}
		if r, ok := w.policies.set.Resolve(id); ok && !r.Unlimited && (r.Rule.Limit != c.rule.Limit || r.Rule.Burst != c.rule.Burst) {
			c.rule = r.Rule
			c.meter.SetRule(w.at(), r.Rule)
		}
	}
}
