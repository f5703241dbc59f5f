package simulate

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/weirproxy/weir/api/v1alpha1"
	"github.com/weirproxy/weir/internal/simulate/scenario"
)

// schedule is a fleet, its traffic, and what goes wrong when.
type schedule struct {
	seed   uint64
	s      *scenario.Scenario
	events []trouble // by time
	end    time.Duration
}

// trouble is one thing that goes wrong.
type trouble struct {
	at   time.Duration
	text string
	do   func(*model)
}

func (s *schedule) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d: %d pods, %d slots a pod (0: many), requests until %v, uplink up to %v, %g of reports up to %v later\n",
		s.seed, s.s.Pods, s.s.Timing.MaxCounters, s.end, s.s.Network.Uplink.Max, s.s.Network.TailProbability, s.s.Network.TailMax)
	for i := range s.s.Policy.Limits {
		l := &s.s.Policy.Limits[i]
		fmt.Fprintf(&b, "  limit %s by %v: %d a window of %v %s %s\n", l.Name, l.Counters, l.Rates[0].Limit, l.Rates[0].Window, l.Rates[0].Algorithm, l.Mode)
	}
	for i := range s.s.Traffic {
		f := &s.s.Traffic[i]
		fmt.Fprintf(&b, "  requests of %d clients, cost %d:", f.Clients, f.Cost)
		for _, r := range f.Rate {
			fmt.Fprintf(&b, " %v %.0f/s", r.At, r.Value)
		}
		b.WriteString("\n")
	}
	for _, e := range s.events {
		fmt.Fprintf(&b, "  %8v  %s\n", e.at, e.text)
	}
	return b.String()
}

// dice draws a schedule.
type dice struct{ *rand.Rand }

// newSchedule draws the schedule of a seed.
func newSchedule(seed uint64) *schedule {
	d := dice{rand.New(rand.NewPCG(seed, 0xfa17))} //nolint:gosec // no secret
	s := &schedule{seed: seed, end: d.between(5*time.Second, 15*time.Second)}
	busy := s.end
	if d.one(15) { // and so long that idle counters go, at pods and at the owner
		s.end += d.between(65*time.Second, 130*time.Second)
	}
	s.s = &scenario.Scenario{
		Name: fmt.Sprint("model-", seed), Pods: 2 + d.IntN(4), Duration: s.end + settleWithin, Seed: seed, Runs: 1,
		Arrivals: scenario.Poisson, Policy: d.policy(),
		Network: scenario.Network{
			Uplink: d.delay(), Downlink: d.delay(), TailProbability: 0.1 * d.Float64(), TailMax: d.between(0, 300*time.Millisecond),
		},
		Timing: scenario.Timing{
			Flush: 50 * time.Millisecond, Tick: 25 * time.Millisecond, IdleTick: 100 * time.Millisecond,
			StaleAfter: d.between(200*time.Millisecond, time.Second), FallbackFloor: 0.5,
		},
	}
	if d.one(3) {
		s.s.Timing.MaxCounters = 1 + d.IntN(4)
	}
	d.traffic(s, busy)
	d.troubles(s, busy)
	return s
}

func (d dice) one(in int) bool { return d.IntN(in) == 0 }

func (d dice) between(low, high time.Duration) time.Duration {
	return (low + time.Duration(d.Float64()*float64(high-low))).Round(time.Millisecond)
}

func (d dice) delay() scenario.Delay {
	low := d.between(2*time.Millisecond, 15*time.Millisecond)
	return scenario.Delay{Min: low, Max: low + d.between(0, 30*time.Millisecond)}
}

func (d dice) policy() *v1alpha1.QuotaPolicySpec {
	most := int64(5)
	p := &v1alpha1.QuotaPolicySpec{
		TargetRefs: []v1alpha1.TargetRef{{Kind: "Service", Name: "orders"}},
		Client:     []v1alpha1.ClientSource{{Source: v1alpha1.SourcePrincipal}},
		Limits: []v1alpha1.Limit{{
			Name: "each-client", Counters: []v1alpha1.Counter{v1alpha1.CounterClient}, Rates: []v1alpha1.Rate{d.rate(20, 400)},
			Cost: &v1alpha1.Cost{Header: "x-cost", Max: &most},
		}},
	}
	if d.one(2) {
		whole := v1alpha1.Limit{Name: "whole-service", Rates: []v1alpha1.Rate{d.rate(50, 1500)}}
		if d.one(4) {
			whole.Mode = v1alpha1.ModeShadow
		}
		p.Limits = append(p.Limits, whole)
	}
	return p
}

func (d dice) rate(low, high int64) v1alpha1.Rate {
	window := v1alpha1.Duration{Duration: time.Second * time.Duration(1+d.IntN(5))}
	r := v1alpha1.Rate{Limit: low + d.Int64N(high-low), Window: &window}
	switch d.IntN(6) {
	case 0:
		r.Algorithm = v1alpha1.TokenBucket
	case 1:
		r.Algorithm, r.Window, r.Period = v1alpha1.Calendar, nil, v1alpha1.Hour
		r.Limit *= 10
	}
	return r
}

// traffic is up to 500 requests/s, with pauses.
func (d dice) traffic(s *schedule, busy time.Duration) {
	clients := 1 + d.IntN(5)
	n := 1 + d.IntN(3)
	for range n {
		f := scenario.Source{Client: "spiffe://shop/client", Clients: clients, ClientSkew: d.Float64(), Cost: uint64(1 + d.IntN(5)), Batch: 1} //nolint:gosec // positive
		if d.one(4) {
			f.Batch = 2 + d.IntN(8)
		}
		for i := range s.s.Pods {
			f.Pods, f.Weights = append(f.Pods, i), append(f.Weights, 0.2+d.Float64())
		}
		var at time.Duration
		for at < busy {
			value := 0.0
			if !d.one(3) {
				value = float64(1 + d.IntN(450/n))
			}
			f.Rate = append(f.Rate, scenario.Step{At: at, Value: value})
			at += d.between(300*time.Millisecond, 4*time.Second)
		}
		if s.end > busy {
			f.Rate = append(f.Rate, scenario.Step{At: busy, Value: 0}, scenario.Step{At: s.end - 2*time.Second, Value: 20})
		}
		f.Rate = append(f.Rate, scenario.Step{At: s.end, Value: 0})
		s.s.Traffic = append(s.s.Traffic, f)
	}
}

// troubles come alone, or several at about the same time.
func (d dice) troubles(s *schedule, busy time.Duration) {
	together := d.between(busy/10, busy*8/10)
	for range 1 + d.IntN(7) {
		at := d.between(0, busy*9/10)
		if d.one(2) {
			at = max(together+d.between(-150*time.Millisecond, 150*time.Millisecond), 0)
		}
		kinds := kindsOfTrouble()
		e := kinds[d.IntN(len(kinds))](d, busy)
		e.at = at
		s.events = append(s.events, e)
	}
	slices.SortStableFunc(s.events, func(a, b trouble) int { return int(a.at - b.at) })
}

func kindsOfTrouble() []func(dice, time.Duration) trouble {
	return []func(dice, time.Duration) trouble{
		dice.messages, dice.messages, dice.writes, dice.restart, dice.restart, dice.restart, dice.cut, dice.move, dice.move, dice.move, dice.away, dice.away,
		dice.loss, dice.lossAndMove, dice.topic, dice.limit, dice.fleet,
	}
}

// messages of pods are lost, repeated and late for a while.
func (d dice) messages(time.Duration) trouble {
	c := chance{}
	var what []string
	for _, k := range []struct {
		name string
		p    *float64
		most float64
	}{
		{"lost", &c.usageLoss, 0.5},
		{"appended twice", &c.usageDuplicate, 0.5},
		{"appended without an acknowledgement", &c.ackLoss, 0.5},
		{"appended late, given up before", &c.usageLate, 0.4},
		{"appended again, late", &c.usageRepeat, 0.4},
		{"decisions not heard", &c.decisionLoss, 0.5},
	} {
		if d.one(2) {
			*k.p = d.Float64() * k.most
			what = append(what, fmt.Sprintf("%s %.2f", k.name, *k.p))
		}
	}
	span := d.between(100*time.Millisecond, 5*time.Second)
	return trouble{text: fmt.Sprintf("for %v, of reports: %s", span, strings.Join(what, ", ")), do: func(m *model) {
		m.w.chance = c
		m.w.after(span, func() { m.w.chance = chance{} })
	}}
}

// writes to the store come late, or their answers do not, for a while.
func (d dice) writes(time.Duration) trouble {
	late, unanswered, span := d.Float64()/2, d.Float64()/2, d.between(100*time.Millisecond, 3*time.Second)
	return trouble{text: fmt.Sprintf("for %v, of writes to the store: late %.2f, unanswered %.2f", span, late, unanswered), do: func(m *model) {
		m.w.chance.flushLate, m.w.chance.flushUnanswered = late, unanswered
		m.w.after(span, func() { m.w.chance.flushLate, m.w.chance.flushUnanswered = 0, 0 })
		m.stir(span)
	}}
}

func (d dice) restart(time.Duration) trouble {
	graceful, each, times := d.one(2), d.between(20*time.Millisecond, 700*time.Millisecond), 1+d.IntN(4)
	first := d.IntN(6)
	text := fmt.Sprintf("%d pods from %d on restart, one each %v, ", times, first, each)
	if graceful {
		text += "with SIGTERM"
	} else {
		text += "with SIGKILL"
	}
	return trouble{text: text, do: func(m *model) {
		for i := range times {
			m.w.after(time.Duration(i)*each, func() {
				m.restarts++
				m.w.restart((first+i)%len(m.w.pods), graceful, 1000+m.restarts)
			})
		}
	}}
}

// cut: one pod reaches no broker.
func (d dice) cut(time.Duration) trouble {
	span, i := d.between(100*time.Millisecond, 6*time.Second), d.IntN(6)
	return trouble{text: fmt.Sprintf("pod %d reaches no broker for %v", i, span), do: func(m *model) {
		p := m.w.pods[i%len(m.w.pods)]
		p.cut = true
		m.w.after(span, func() { p.cut = false })
	}}
}

// move: another owner takes the partition, with the old one or the new one slow, or at once a third.
func (d dice) move(time.Duration) trouble {
	span := d.between(50*time.Millisecond, 3*time.Second)
	switch d.IntN(6) {
	case 0:
		return trouble{text: "the owner leaves", do: func(m *model) {
			m.w.moveOwner(&scenario.Fault{Old: scenario.OldLeaves})
		}}
	case 1:
		return trouble{text: fmt.Sprintf("the owner dies, the next one comes %v later", span), do: func(m *model) {
			m.w.moveOwner(&scenario.Fault{Old: scenario.OldDies, For: span})
		}}
	case 2:
		return trouble{text: fmt.Sprintf("the owner stalls for %v, while another one takes over", span), do: func(m *model) {
			m.w.moveOwner(&scenario.Fault{Old: scenario.OldStalls, For: span})
		}}
	case 3:
		return trouble{text: fmt.Sprintf("the owner is slow by %v, while another one takes over", span/3), do: func(m *model) {
			m.w.owner().slow = span / 3
			m.w.startOwner()
		}}
	case 4:
		return trouble{text: fmt.Sprintf("the owner leaves to one that is slow by %v for %v", span/6, 2*span), do: func(m *model) {
			m.w.owner().leave(func() {
				o := m.w.startOwner()
				o.slow = span / 6
				m.stir(3 * span)
				m.w.after(2*span, func() { o.slow = 0 })
			})
		}}
	default:
		return trouble{text: fmt.Sprintf("two owners start at once, and the partition goes to a third one %v later", span/8), do: func(m *model) {
			m.w.startOwner()
			m.w.startOwner()
			m.w.after(span/8, func() { m.w.startOwner() })
		}}
	}
}

func (d dice) away(time.Duration) trouble {
	kinds := []scenario.Kind{scenario.AggregatorDown, scenario.BrokerDown, scenario.StoreDown}
	kind, span := kinds[d.IntN(len(kinds))], d.between(50*time.Millisecond, 4*time.Second)
	return trouble{text: fmt.Sprintf("%s for %v", kind, span), do: func(m *model) {
		m.w.strike(&scenario.Fault{Kind: kind, For: span})
		if kind == scenario.StoreDown {
			m.stir(span)
		}
	}}
}

// loss: the store comes back as it was some time before, or empty.
func (d dice) loss(time.Duration) trouble {
	if d.one(2) {
		return trouble{text: "the store loses everything", do: func(m *model) { m.lose(newMemory()) }}
	}
	const last = 50 * time.Millisecond
	return trouble{text: fmt.Sprintf("the store loses what was written in the next %v", last), do: func(m *model) {
		kept := &memory{m.w.store.Copy()}
		m.w.after(last, func() { m.lose(kept) })
	}}
}

func (d dice) lossAndMove(busy time.Duration) trouble {
	loss, move, gap := d.loss(busy), d.move(busy), d.between(0, 120*time.Millisecond)
	first, then := loss, move
	if d.one(2) {
		first, then = move, loss
	}
	return trouble{text: fmt.Sprintf("%s, and %v later: %s", first.text, gap, then.text), do: func(m *model) {
		first.do(m)
		m.w.after(gap, func() { then.do(m) })
	}}
}

func (d dice) topic(time.Duration) trouble {
	return trouble{text: "weir.usage is made anew", do: func(m *model) { m.w.newTopic() }}
}

func (d dice) limit(time.Duration) trouble {
	amount := float64(10 + d.IntN(600))
	return trouble{text: fmt.Sprintf("each-client becomes %.0f", amount), do: func(m *model) {
		m.w.changeLimit(&scenario.Fault{LimitName: "each-client", Limit: amount})
	}}
}

func (d dice) fleet(time.Duration) trouble {
	n := 1 + d.IntN(6)
	return trouble{text: fmt.Sprintf("the fleet becomes %d pods", n), do: func(m *model) { m.w.resize(n) }}
}
