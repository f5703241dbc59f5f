//go:build !race

package simulate

import (
	"fmt"
	"time"

	"github.com/weirproxy/weir/internal/quota"
)

// allowances are the parts of c that are known beforehand. A test leaves each out to see it needed.
type allowances struct {
	// bucket: a line of regrowth runs between the ends of two sub-buckets of the owner's window, W/60.
	bucket time.Duration
	// grain is what rounding to milliseconds may cost: an admission, a report's age and span, its append time.
	grain time.Duration
	// guessed: a renewed record's lines of regrowth are those of when it was made, and past the second knot any curve's line
	// ends at a promise and passes through none; 1 to allow for all of that.
	guessed float64
	// undecided is the part of M that an owner may have included and not decided on while its headers renew a record: the
	// schedule of aggregator/partition lets that much gather.
	undecided float64
}

func allowed(window time.Duration) allowances {
	return allowances{bucket: window / 60, grain: 4 * time.Millisecond, guessed: 1, undecided: 0.01}
}

// stand is what a pod's unit was admitted on.
type stand struct {
	quota.Standing
	at    int64
	told  int     // the pod's units that the header includes
	deaf  bool    // more than the pod knows
	room  float64 // Q: what is left of the amount, as much as the owner and the pod may think
	loose bool    // without a fresh header, or on a record that a lost one should have replaced
}

// terms of the bound, units: V - M <= lag + drift + over + pace + c.
type terms struct {
	lag, drift, over, pace, c float64
	// rounding and clocks are what c is made of.
	rounding, clocks float64
	excess           float64 // V - M
	pods             int     // of which the newest header does not include all
	shares           float64 // theirs together
	loose            bool    // one of them is outside the bound
}

func (t *terms) sum() float64 { return t.lag + t.drift + t.over + t.pace + t.c }

func (t *terms) String() string {
	return fmt.Sprintf("V-M %.2f; lag %.2f + drift %.2f + over %.2f + pace %.2f + c %.2f (rounding %.2f, clocks %.2f) = %.2f; %d pods, shares %.3f",
		t.excess, t.lag, t.drift, t.over, t.pace, t.c, t.rounding, t.clocks, t.sum(), t.pods, t.shares)
}

func (t *terms) add(o *terms) {
	t.excess, t.lag, t.drift, t.over = t.excess+o.excess, t.lag+o.lag, t.drift+o.drift, t.over+o.over
	t.pace, t.c, t.rounding, t.clocks = t.pace+o.pace, t.c+o.c, t.rounding+o.rounding, t.clocks+o.clocks
}

// note takes down what a pod's newest unit was admitted on, and holds the pod's part of the bound: what it admitted
// and its header does not include is no more than its share of what is left, and what its standing grants beyond.
func (b *bound) note(p *podTruth) error {
	s := stand{Standing: p.slot.Counter.Standing(b.w.now), at: b.now()}
	s.loose = b.outside(p, &s)
	if !s.loose {
		switch s.Basis {
		case quota.BasisCold:
			s.room = b.limit
		default:
			s.told = p.told(s.Watermark)
			s.deaf = s.Counted > float64(len(p.times)-s.told)+slip
			s.room = b.room(&s)
		}
	}
	p.last = s
	if s.loose {
		return nil
	}
	return b.hold(p, &s)
}

// outside says that the bound does not speak of what the pod went by.
func (b *bound) outside(p *podTruth, s *stand) bool {
	switch s.Basis {
	case quota.BasisCold:
		return false
	case quota.BasisDecision:
		h, _, _ := p.slot.Counter.Record()
		return b.replaced(h.Sequence, s.Sequence)
	default:
		return true
	}
}

// room is Q: what is left by what reports say of when units came, a little later than now. Pods take no more to be left.
func (b *bound) room(s *stand) float64 {
	ahead := max(s.Lead-b.down, 0) + b.lead + b.grain + b.bucket
	q := b.limit - b.content(b.claimed, s.Watermark, s.at+ahead.Milliseconds())
	q += b.guessed * s.Guessed
	if s.Renewed {
		q += b.undecided * b.limit
	}
	return min(q, b.limit)
}

func (b *bound) hold(p *podTruth, s *stand) error {
	if s.Counted > s.Most+slip {
		return fmt.Errorf("%s goes beyond what it may: %.3f of %.3f units; %+v", p.pod.name, s.Counted, s.Most, s.Standing)
	}
	if s.Basis == quota.BasisCold {
		if own := float64(len(p.times) - p.first(s.at-b.window)); own > s.Counted+slip {
			return fmt.Errorf("%s has forgotten units of its own window: %.0f, and it counts %.0f", p.pod.name, own, s.Counted)
		}
		return nil
	}
	if u := float64(len(p.times) - s.told); u > s.Counted+slip {
		return fmt.Errorf("%s has %.0f units that its header does not include, and counts %.0f; %+v", p.pod.name, u, s.Counted, s.Standing)
	}
	if s.Left > s.room+slip {
		return fmt.Errorf("%s takes %.3f units to be left, where at most %.3f are; %+v", p.pod.name, s.Left, s.room, s.Standing)
	}
	return nil
}

// first is the number of the pod's units that came at ms or before.
func (p *podTruth) first(ms int64) int {
	n := len(p.times)
	for n > 0 && p.times[n-1] > ms {
		n--
	}
	return n
}

// terms adds the bound up now, for the newest watermark that any pod went by.
func (b *bound) terms() terms {
	now := b.now()
	newest := b.newest
	t := terms{excess: float64(b.all.after(now-b.window)) - b.limit}
	included := b.content(b.within, newest, now)
	left := b.limit - included
	t.drift = -left
	for _, p := range b.pods {
		if len(p.times) == p.told(newest) {
			continue // all of it is included
		}
		s := &p.last
		if now-s.at >= b.window {
			continue // all of it has left
		}
		t.loose = t.loose || s.loose
		t.pods++
		t.shares += s.Share
		t.drift += s.Share * left
		since, own := included, float64(p.toldWithin(newest, now-b.window))
		if s.Basis != quota.BasisCold {
			since -= b.content(b.within, s.Watermark, now)
			own = float64(p.told(newest) - s.told)
		}
		t.lag += s.Share*since - own
		t.over += s.Beyond
		t.pace += s.Pace
		t.rounding += s.Rounding
		t.clocks += s.Share * (s.room - (left + since))
	}
	t.c = t.rounding + t.clocks
	return t
}

// idleShares is what the shares of pods that one decision does not know may add to its sum: alpha.
const idleShares = 0.1

// share holds drift to what it is for: by one record and its own header, shares are parts of one whole. A pod that has not
// heard of its newest report's acknowledgement has its share by an older one, and is left out.
func (b *bound) share() error {
	clear(b.sums)
	for _, p := range b.pods {
		s := &p.last
		if s.Basis != quota.BasisDecision || s.Renewed || s.loose || s.deaf {
			continue
		}
		b.sums[s.Sequence] += s.Share
		if sum := b.sums[s.Sequence]; sum > 1+idleShares+slip {
			return fmt.Errorf("shares by decision %d add up to %.3f", s.Sequence, sum)
		}
	}
	return nil
}
