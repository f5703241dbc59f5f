package partition

import (
	"cmp"
	"slices"
	"strings"

	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/internal/policy"
)

// TopPath is where an aggregator answers with a Top: ?limits= (DefaultTopLimits, at most MaxTopLimits) and
// &counters= of each (1, at most MaxTopCounters).
const (
	TopPath          = "/debug/limits"
	DefaultTopLimits = 20
	MaxTopLimits     = 100
	MaxTopCounters   = 5
)

// Top is the limits that an aggregator owns counters of, those nearest to or furthest over their amount first.
type Top struct {
	Instance string `json:"instance"`
	// Partitions is how many the installation has, Held which of them are decided here and answered.
	Partitions int32   `json:"partitions"`
	Held       []int32 `json:"held"`
	// Limits are what was asked for, LeftOut how many more there are.
	Limits  []LimitView `json:"limits"`
	LeftOut int         `json:"leftOut"`
}

// LimitView is one rate of a limit at its owners, for people.
type LimitView struct {
	// Limit is policy namespace/policy name/limit, Rate in words, 100/1s. Mode: Enforce, Shadow.
	Limit string `json:"limit"`
	Rate  string `json:"rate"`
	Mode  string `json:"mode"`
	// Owners are the aggregators that hold its counters.
	Owners []string `json:"owners"`
	// Counters live, and how many of them hold more than their amount as far as the owner knows now.
	Counters int `json:"counters"`
	Over     int `json:"over"`
	// Fullest is the most that one of them held in the last minute, of its amount: above 1 is over-admission.
	Fullest float64 `json:"fullest"`
	// OverUnits were admitted beyond amounts, OverSeconds is how long counters held more than theirs, summed over
	// counters; since the owner took over or the limit came.
	OverUnits   float64 `json:"overUnits"`
	OverSeconds float64 `json:"overSeconds"`
	// Offered to all counters, units/s, and the part of it beyond what their rates let through, 0..1.
	Offered float64 `json:"offered"`
	Refused float64 `json:"refused"`
	// Top are the fullest counters, the fullest first.
	Top []CounterView `json:"top"`
}

// CounterView is one counter at its owner, for people.
type CounterView struct {
	ID     string `json:"id"`
	Target string `json:"target"`
	// CountedBy says in words what it counts by; secrets are shown as the beginning of their hash.
	CountedBy []string `json:"countedBy,omitempty"`
	// Content is what the owner knows that it holds now, of Amount. Units.
	Content float64 `json:"content"`
	Amount  float64 `json:"amount"`
	// Offered to it, units/s.
	Offered float64 `json:"offered"`
}

// full is a counter's content as part of its amount.
func (c *CounterView) full() float64 { return c.Content / c.Amount }

// near is by how much a limit is used up, at the most, now or in the last minute.
func (l *LimitView) near() float64 {
	if len(l.Top) == 0 {
		return l.Fullest
	}
	return max(l.Fullest, l.Top[0].full())
}

// MergeTop makes one view of each limit's rate out of those of several partitions or aggregators, and returns the
// first n of them with at most counters each, and how many it left out.
func MergeTop(views []LimitView, n, counters int) (top []LimitView, leftOut int) {
	byName := map[[2]string]*LimitView{}
	for i := range views {
		v := views[i]
		k := [2]string{v.Limit, v.Rate}
		if have := byName[k]; have != nil {
			have.merge(&v)
			continue
		}
		v.Top, v.Owners = slices.Clone(v.Top), slices.Clone(v.Owners)
		byName[k] = &v
	}
	top = []LimitView{}
	for _, v := range byName {
		sortCounters(v.Top)
		v.Top = v.Top[:min(len(v.Top), counters)]
		top = append(top, *v)
	}
	slices.SortFunc(top, func(a, b LimitView) int {
		return cmp.Or(cmp.Compare(b.near(), a.near()), cmp.Compare(a.Limit, b.Limit), cmp.Compare(a.Rate, b.Rate))
	})
	leftOut = max(len(top)-n, 0)
	return top[:len(top)-leftOut], leftOut
}

func (l *LimitView) merge(m *LimitView) {
	if sum := l.Offered + m.Offered; sum > 0 {
		l.Refused = (l.Refused*l.Offered + m.Refused*m.Offered) / sum
		l.Offered = sum
	}
	l.Counters += m.Counters
	l.Over += m.Over
	l.Fullest = max(l.Fullest, m.Fullest)
	l.OverUnits += m.OverUnits
	l.OverSeconds += m.OverSeconds
	l.Owners = append(l.Owners, m.Owners...)
	slices.Sort(l.Owners)
	l.Owners = slices.Compact(l.Owners)
	l.Top = append(l.Top, m.Top...)
}

func sortCounters(top []CounterView) {
	slices.SortFunc(top, func(a, b CounterView) int {
		return cmp.Or(cmp.Compare(b.full(), a.full()), cmp.Compare(b.Offered, a.Offered), cmp.Compare(a.ID, b.ID))
	})
}

// countedByMost bounds the text of one dimension, bytes: a client chooses its own.
const countedByMost = 120

// countedBy says in words what a counter counts by.
func countedBy(identity []byte) []string {
	id, err := wirev1.DecodeIdentity(identity)
	if err != nil {
		return nil
	}
	var out []string
	for i := range id.Dimensions {
		text := policy.DescribeDimension(&id.Dimensions[i])
		if len(text) > countedByMost {
			text = strings.ToValidUTF8(text[:countedByMost], "") + "…" // no half rune
		}
		out = append(out, text)
	}
	return out
}
