package measure

import (
	"slices"
	"sort"
	"time"

	"github.com/weirproxy/weir/internal/quota"
)

const (
	defaultBins = 600
	maxBins     = 100_000
)

// grain of all measures: what is admitted within one millisecond is admitted at once.
const grain = time.Millisecond

// span of virtual time, ms, [from, to).
type span struct{ from, to int64 }

// plan is Options at the measures' grain. It is immutable.
type plan struct {
	start   quota.Millis
	steady  span
	bin     int64
	outages []span // apart from each other, in order
}

func newPlan(o *Options) *plan {
	p := &plan{start: o.Start, steady: span{millis(o.Steady), max(millis(o.End), 1)}}
	bins := int64(o.Bins)
	if bins <= 0 {
		bins = defaultBins
	}
	bins = min(bins, maxBins)
	p.bin = (p.steady.to + bins - 1) / bins
	p.outages = apart(o.Outages)
	return p
}

func millis(d time.Duration) int64 { return max(int64(d/grain), 0) }

func apart(outages []Span) []span {
	var all []span
	for _, o := range outages {
		if s := (span{millis(o.From), millis(o.To)}); s.from < s.to {
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(a, b span) int { return int(min(max(a.from-b.from, -1), 1)) })
	var out []span
	for _, s := range all {
		if n := len(out); n > 0 && s.from <= out[n-1].to {
			out[n-1].to = max(out[n-1].to, s.to)
		} else {
			out = append(out, s)
		}
	}
	return out
}

func (p *plan) bins() int { return int((p.steady.to + p.bin - 1) / p.bin) }

// binAt is the bin that holds ms; what comes after the end is the last one's.
func (p *plan) binAt(ms int64) int { return min(int(ms/p.bin), p.bins()-1) }

// outageAfter is the first outage that ends after ms, or one that never comes.
func (p *plan) outageAfter(ms int64) span {
	i := sort.Search(len(p.outages), func(i int) bool { return p.outages[i].to > ms })
	if i == len(p.outages) {
		return span{never, never}
	}
	return p.outages[i]
}

// look is the next time after ms when a counter is looked at though nobody asks: where a bin or an outage begins.
func (p *plan) look(ms int64) int64 {
	next := (ms/p.bin + 1) * p.bin
	if next >= p.steady.to {
		next = never
	}
	i := sort.Search(len(p.outages), func(i int) bool { return p.outages[i].from > ms })
	if i < len(p.outages) {
		next = min(next, p.outages[i].from)
	}
	return next
}

// overlap of s with [from, to), ms.
func (s span) overlap(from, to int64) int64 { return max(min(s.to, to)-max(s.from, from), 0) }

func (s span) holds(ms int64) bool { return s.from <= ms && ms < s.to }
