package leases

import (
	"math"
	"time"
)

// evenPart of the limit's rate is shared evenly, whatever pods ask for: those that are idle need a unit at
// hand, too.
const evenPart = 0.25

// Tick grants all that is left, by demand. offset, in [0, 1), says who gets the units that are no
// whole number.
func (o *Owner) Tick(offset float64) Batch {
	o.batch++
	b := Batch{ID: GrantID{o.epoch, o.batch}}
	left := o.rules.Limit - o.held
	if left <= 0 {
		return b
	}
	for pod, units := range split(left, o.wants(left), offset) {
		if units == 0 {
			continue
		}
		a := o.current[pod]
		b.Grants = append(b.Grants, Grant{Pod: pod, Run: a.run, Units: units, Anchor: a.number})
		o.charge(a, b.ID, units, 0)
	}
	return b
}

// charge counts a grant that was made at least aged ago.
func (o *Owner) charge(a *account, id GrantID, units int, aged time.Duration) {
	c := &charge{id: id, units: units, until: never}
	if d, ends := o.rules.ceiling(aged); ends {
		c.until = o.after(d)
	}
	o.held += units
	o.free(units, c.until)
	if !o.passed(c.until) || o.rules.Hold == UntilVoid {
		a.charges = append(a.charges, c)
	}
}

// wants is how far each pod is below its share of what it and the others hold and of left. A pod that
// was not heard of for half a lease gets nothing: it would come too late.
func (o *Owner) wants(left int) []float64 {
	o.deficits = o.deficits[:0]
	even := evenPart * float64(o.rules.Limit) / o.rules.Window.Seconds() / float64(len(o.current))
	pool, weights := float64(left), 0.0
	for _, a := range o.current {
		if o.alive(a) {
			pool += float64(o.outstanding(a))
			weights += a.demand + even
		}
	}
	for _, a := range o.current {
		want := 0.0
		if o.alive(a) {
			want = math.Max(0, pool*(a.demand+even)/weights-float64(o.outstanding(a)))
		}
		o.deficits = append(o.deficits, want)
	}
	return o.deficits
}

func (o *Owner) alive(a *account) bool {
	return a != nil && o.now-a.heard < Time(o.rules.Lease/2)
}

// outstanding is what a pod may still hold.
func (o *Owner) outstanding(a *account) (units int) {
	rest := a.charges[:0]
	for _, c := range a.charges {
		if !o.passed(c.until) {
			units += c.units - c.used
		} else if o.rules.Hold != UntilVoid { // there a late report counts, if late
			continue
		}
		rest = append(rest, c)
	}
	clear(a.charges[len(rest):])
	a.charges = rest
	return units
}
