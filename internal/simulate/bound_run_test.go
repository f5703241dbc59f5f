//go:build !race

package simulate

import (
	"fmt"
	"time"

	"github.com/weirproxy/weir/internal/simulate/scenario"
)

// bound holds one run to docs/design/bound.md.
type bound struct {
	*truth
	allowances
	lead   time.Duration // the owner's, beyond the way that a report takes at least
	down   time.Duration // from a tick to the log, at least
	newest int64         // watermark that any pod went by
	looked int64
	sums   map[uint64]float64
	found  found
}

// found is what was seen of the bound in some runs.
type found struct {
	admissions, moments, loose int
	over, within2              int       // moments with V > M; of those, with a bound of no more than twice the excess
	part                       []float64 // at those, the excess over the bound
	allows                     []float64 // at those, the bound over the limit
	closest                    terms     // where the part was largest
	sum                        terms     // over those moments
}

func newBound(w *world, s *scenario.Scenario) *bound {
	b := &bound{truth: newTruth(w, s), newest: -1, looked: -1, sums: map[uint64]float64{}}
	b.allowances = allowed(time.Duration(b.window) * time.Millisecond)
	b.lead = max(min(s.Network.Downlink.Min/2, 8*time.Millisecond)-s.Network.Uplink.Min/2, 0)
	b.down = s.Network.Downlink.Min / 2
	return b
}

// fullEnough is the part of M from which on moments are looked at: far below it nothing can be wrong that admissions do not show.
const fullEnough = 0.9

// look judges each pod that just admitted something and, at the first such time in each millisecond, all of them together.
func (b *bound) look(admitted []*podTruth) error {
	for _, p := range admitted {
		b.found.admissions++
		if err := b.note(p); err != nil {
			return err
		}
		b.newest = max(b.newest, p.last.Watermark)
	}
	now := b.now()
	if len(admitted) == 0 || now == b.looked || float64(b.all.after(now-b.window)) < fullEnough*b.limit {
		return nil
	}
	b.looked = now
	if err := b.share(); err != nil {
		return err
	}
	t := b.terms()
	return b.found.take(&t, b.limit)
}

func (f *found) take(t *terms, limit float64) error {
	if t.loose {
		f.loose++
		return nil
	}
	f.moments++
	if t.excess > t.sum()+slip {
		return fmt.Errorf("the bound does not hold: %s", t)
	}
	if t.excess <= 0 {
		return nil
	}
	f.over++
	if t.sum() <= 2*t.excess {
		f.within2++
	}
	part := t.excess / t.sum()
	if len(f.part) == 0 || part > f.closest.excess/f.closest.sum() {
		f.closest = *t
	}
	f.part, f.allows = append(f.part, part), append(f.allows, t.sum()/limit)
	f.sum.add(t)
	return nil
}

// slip is what adding up in floating point may cost, units.
const slip = 1e-6

func (f *found) add(o *found) {
	f.admissions, f.moments, f.loose = f.admissions+o.admissions, f.moments+o.moments, f.loose+o.loose
	f.over, f.within2 = f.over+o.over, f.within2+o.within2
	if len(f.part) == 0 || len(o.part) > 0 && o.closest.excess/o.closest.sum() > f.closest.excess/f.closest.sum() {
		f.closest = o.closest
	}
	f.part, f.allows = append(f.part, o.part...), append(f.allows, o.allows...)
	f.sum.add(&o.sum)
}

// runBound runs a scenario under its bound, and stops where that does not hold.
func runBound(s *scenario.Scenario, seed uint64, change func(*bound)) (*bound, error) {
	lent := newCellPool().lend()
	defer lent.giveBack()
	w, err := newWorld(s, seed, lent)
	if err != nil {
		return nil, err
	}
	b := newBound(w, s)
	if change != nil {
		change(b)
	}
	var admitted []*podTruth
	err = w.watch(s.Duration, func() error {
		admitted = b.admitted(admitted[:0])
		if err := b.look(admitted); err != nil {
			return fmt.Errorf("at %v: %w", w.at(), err)
		}
		if err := b.decided(); err != nil {
			return err
		}
		return b.log()
	})
	return b, err
}
