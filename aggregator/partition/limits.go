package partition

import (
	"cmp"
	"slices"
	"time"

	"github.com/weirproxy/weir/internal/policy"
	"github.com/weirproxy/weir/internal/quota"
)

// limit is one rate of a limit that counters here belong to.
type limit struct {
	limitKey
	mode           string
	peak           peak    // the most that a counter held, as part of its amount
	units, seconds float64 // over, of all counters
}

// limitKey names it: the policy as namespace/name, the limit, and its rate in the policy's own amount.
type limitKey struct{ policy, name, rate string }

// The modes of a limit, for people.
const (
	modeEnforce = "Enforce"
	modeShadow  = "Shadow"
)

// limitOf finds the limit that a rate belongs to, and makes it if it is new. Policies in force bound their number.
func (p *Partition) limitOf(r *policy.Rate) *limit {
	k := limitKey{r.Limit.Policy.Name, r.Limit.Name, r.Title}
	l := p.limits[k]
	if l == nil {
		l = &limit{limitKey: k}
		p.limits[k] = l
	}
	l.mode = modeEnforce
	if r.Limit.Mode == policy.Shadow {
		l.mode = modeShadow
	}
	return l
}

// keepLimits forgets those that no policy in force has any more.
func (p *Partition) keepLimits(s *policy.Set) {
	if len(p.limits) == 0 {
		return
	}
	in := make(map[limitKey]bool)
	for _, pol := range s.Policies() {
		for _, l := range pol.Limits {
			for _, r := range l.Rates {
				in[limitKey{pol.Name, l.Name, r.Title}] = true
			}
		}
	}
	for k := range p.limits {
		if !in[k] {
			delete(p.limits, k)
		}
	}
}

// Seen is what was seen of one rate of a limit.
type Seen struct {
	// Policy is namespace/name, Rate in words: 100/1s.
	Policy, Limit, Rate string
	// Fullest is the most that one of its counters held in the last minute, as part of the amount: above 1 is
	// over-admission.
	Fullest float64
	// OverUnits were admitted beyond amounts, OverSeconds is how long counters held more than theirs, summed over
	// counters; both since the partition was claimed or the limit came.
	OverUnits, OverSeconds float64
}

// Limits returns what was seen of the limits that have or had counters here, by name.
func (p *Partition) Limits(now quota.Time) []Seen {
	out := make([]Seen, 0, len(p.limits))
	for k, l := range p.limits {
		out = append(out, Seen{
			Policy: k.policy, Limit: k.name, Rate: k.rate,
			Fullest: l.peak.value(now), OverUnits: l.units, OverSeconds: l.seconds,
		})
	}
	slices.SortFunc(out, func(a, b Seen) int {
		return cmp.Or(cmp.Compare(a.Policy, b.Policy), cmp.Compare(a.Limit, b.Limit), cmp.Compare(a.Rate, b.Rate))
	})
	return out
}

const (
	peakSlots = 12
	peakSlot  = quota.Time(time.Minute / peakSlots)
)

// peak is the largest value of the last minute, to a twelfth of it.
type peak struct {
	slots [peakSlots]float64
	at    quota.Time // number of the newest slot
}

func (k *peak) advance(now quota.Time) {
	to := now / peakSlot
	for s := max(k.at+1, to-peakSlots+1); s <= to; s++ {
		k.slots[s%peakSlots] = 0
	}
	k.at = max(k.at, to)
}

func (k *peak) note(value float64, now quota.Time) {
	k.advance(now)
	newest := &k.slots[k.at%peakSlots]
	*newest = max(*newest, value)
}

func (k *peak) value(now quota.Time) float64 {
	k.advance(now)
	return slices.Max(k.slots[:])
}
