package designs

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/weirproxy/weir/internal/simulate/measure"
	"github.com/weirproxy/weir/internal/simulate/scenario"
)

// step is the grain of virtual time.
const step = time.Millisecond

// Fleet is what a design runs on: the pods, the limit, a way to send messages, and chance.
type Fleet struct {
	Pods   int
	Limit  float64 // requests in a Window
	Window time.Duration

	scenario *scenario.Scenario
	random   *rand.Rand
	away     []measure.Span
	lost     [2]float64 // of reports, of what is broadcast
	twice    float64    // of reports
	// calls to a central store, reports of pods, broadcasts to all of them: so far.
	calls, reports, broadcasts uint64
}

// direction of a message.
type direction int

const (
	up direction = iota
	down
)

// gone says whether what decides is away at now: then it reads, decides and sends nothing.
func (f *Fleet) gone(now time.Duration) bool {
	return slices.ContainsFunc(f.away, func(s measure.Span) bool { return s.From <= now && now < s.To })
}

// due says whether something of this period, offset by phase, falls on now.
func due(now, period, phase time.Duration) bool { return (now+phase)%max(period, step) < step }

// phases are when in their period pods do something, each at a time of its own.
func (f *Fleet) phases(period time.Duration) []time.Duration {
	out := make([]time.Duration, f.Pods)
	for i := range out {
		out[i] = f.below(period)
	}
	return out
}

func (f *Fleet) delay(way direction) time.Duration {
	n := &f.scenario.Network
	d := n.Uplink
	if way == down {
		d = n.Downlink
	}
	t := d.Min + f.below(d.Max-d.Min)
	if f.random.Float64() < n.TailProbability {
		t += f.below(n.TailMax)
	}
	return max(t.Round(step), step)
}

// below is any time under d, uniform.
func (f *Fleet) below(d time.Duration) time.Duration {
	return time.Duration(f.random.Float64() * float64(d))
}
