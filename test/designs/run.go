package designs

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/weirproxy/weir/api/v1alpha1"
	"github.com/weirproxy/weir/internal/quota"
	"github.com/weirproxy/weir/internal/simulate/measure"
	"github.com/weirproxy/weir/internal/simulate/scenario"
)

// settle is how much of an outage passes before it is measured.
const settle = 300 * time.Millisecond

// RunAll runs s on a design as often as asked for, the first with the seed, the next ones counting up. A scenario that
// is not one sliding window, or has faults other than AggregatorDown and lost or doubled messages, is an error.
func RunAll(ctx context.Context, s *scenario.Scenario, k Kind, runs int, seed uint64) ([]*measure.Run, error) {
	var out []*measure.Run
	for i := range uint64(runs) {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("designs: %s: %w", s.Name, err)
		}
		r, err := Run(s, k, seed+i)
		if err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return out, nil
}

// Run is one run. The same seed gives every design the same arrivals.
func Run(s *scenario.Scenario, k Kind, seed uint64) (*measure.Run, error) {
	f, err := newFleet(s, rand.New(rand.NewPCG(seed, 2)))
	if err != nil {
		return nil, fmt.Errorf("designs: scenario %s: %w", s.Name, err)
	}
	var (
		design  = k.New(f)
		rule    = &quota.Rule{Algorithm: quota.SlidingWindow, Limit: f.Limit, Window: f.Window}
		rate    = measure.NewRateMeter("rate", fmt.Sprintf("%g/%v", f.Limit, f.Window), f.measures())
		counter = rate.Counter(0, rule)
		traffic = newTraffic(s, rand.New(rand.NewPCG(seed, 1)))
		out     = &measure.Run{Seed: seed}
	)
	for now := time.Duration(0); now < s.Duration; now += step {
		design.Step(now)
		traffic.step(now, func(pod int) {
			out.Requests++
			answer := measure.Refused
			if design.Allow(now, pod) {
				answer = measure.Admitted
			}
			counter.Offer(now, pod, 1, counter.Exact(now, 1), answer)
		})
	}
	out.Rates = []measure.Rate{rate.Result()}
	out.UsageMessages = float64(f.reports+f.calls) / s.Duration.Seconds()
	out.DecisionBatches = float64(f.broadcasts) / s.Duration.Seconds()
	return out, nil
}

func newFleet(s *scenario.Scenario, random *rand.Rand) (*Fleet, error) {
	if !s.Single {
		return nil, errors.New("it has a policy: these designs hold one rate, so give `rate` instead")
	}
	rate := &s.Policy.Limits[0].Rates[0]
	if rate.Algorithm != "" && rate.Algorithm != v1alpha1.SlidingWindow || rate.Window == nil {
		return nil, fmt.Errorf("its rate is a %s: these designs hold a SlidingWindow", rate.Algorithm)
	}
	f := &Fleet{Pods: s.Pods, Limit: float64(rate.Limit), Window: rate.Window.Duration, scenario: s, random: random}
	for _, fault := range s.Faults {
		switch fault.Kind {
		case scenario.AggregatorDown:
			f.away = append(f.away, measure.Span{From: fault.At, To: fault.At + fault.For})
		case scenario.UsageLoss:
			f.lost[up] = fault.Probability
		case scenario.DecisionLoss:
			f.lost[down] = fault.Probability
		case scenario.UsageDuplicate:
			f.twice = fault.Probability
		default:
			return nil, fmt.Errorf("its fault %s is none that these designs know", fault.Kind)
		}
	}
	return f, nil
}

func (f *Fleet) measures() *measure.Options {
	o := &measure.Options{Steady: f.scenario.SteadyFrom, End: f.scenario.Duration}
	for _, a := range f.away {
		o.Outages = append(o.Outages, measure.Span{From: min(a.From+settle, a.To), To: a.To})
	}
	return o
}
