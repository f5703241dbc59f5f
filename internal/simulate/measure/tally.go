package measure

import (
	"math"
	"slices"
	"time"
)

// maxPods bounds what Jain's index keeps; pods beyond are not in it.
const maxPods = 1 << 20

// tally sums the counters of one rate.
type tally struct {
	plan     *plan
	counters int
	pods     []share

	offered, admitted, falselyRefused float64

	// Worst counters'; parts of the limit.
	over, outageOver float64
	enforce          time.Duration

	// Content over the steady part, unit-ms, and units within outages.
	mine, exact             float64
	outageMine, outageExact float64
	outage                  span // now or next

	bins    []bin
	binFrom int64
	binTo   int64
	present *bin
	allowed []float64 // changes of what the counters together may, units/s
	begun   bool
}

type share struct{ offered, admitted float64 }

type bin struct{ offered, admitted, exact, fill float64 }

func newTally(p *plan) *tally {
	return &tally{plan: p, over: -1, outageOver: -1, outage: p.outageAfter(0),
		bins: make([]bin, p.bins()), allowed: make([]float64, p.bins()+1)}
}

// at is the bin of ms.
func (t *tally) at(ms int64) *bin {
	if ms < t.binFrom || ms >= t.binTo {
		i := t.plan.binAt(ms)
		t.binFrom = int64(i) * t.plan.bin
		t.binTo = t.binFrom + t.plan.bin
		t.present = &t.bins[i]
	}
	return t.present
}

func (t *tally) offer(b *bin, pod int, offered, admitted float64) {
	t.offered += offered
	t.admitted += admitted
	b.offered += offered
	if pod < 0 || pod >= maxPods {
		return
	}
	if pod >= len(t.pods) {
		t.pods = slices.Grow(t.pods, pod+1-len(t.pods))[:pod+1]
	}
	p := &t.pods[pod]
	p.offered += offered
	p.admitted += admitted
}

// charge counts units admitted at ms that lie in every window which ends before until.
func (t *tally) charge(b *bin, ms, until int64, mine, exact float64) {
	b.admitted += mine
	b.exact += exact
	steady := float64(t.plan.steady.overlap(ms, until))
	t.mine += mine * steady
	t.exact += exact * steady
	if t.inOutage(ms) {
		t.outageMine += mine
		t.outageExact += exact
	}
}

// excess notes by how much a content exceeded the limit at ms.
func (t *tally) excess(ms int64, over float64) {
	t.over = max(t.over, over)
	if t.inOutage(ms) {
		t.outageOver = max(t.outageOver, over)
	}
}

// fullest notes a content over the limit in the bin of ms.
func (t *tally) fullest(ms int64, fill float64) {
	b := &t.bins[t.plan.binAt(ms)]
	b.fill = max(b.fill, fill)
}

func (t *tally) inOutage(ms int64) bool {
	if ms >= t.outage.to {
		t.outage = t.plan.outageAfter(ms)
	}
	return t.outage.holds(ms)
}

// allowFirst adds the rate of a counter first seen at ms; the first of all allowed it from the run's start.
func (t *tally) allowFirst(ms int64, rate float64) {
	if !t.begun {
		t.begun = true
		ms = 0
	}
	t.allow(ms, rate)
}

// allow changes what is allowed from ms on, the bin of ms by its part.
func (t *tally) allow(ms int64, change float64) {
	i := t.plan.binAt(ms)
	into := min(float64(ms-int64(i)*t.plan.bin)/float64(t.plan.bin), 1)
	t.allowed[i] += change * (1 - into)
	t.allowed[i+1] += change * into
}

func (t *tally) values() Values {
	steady := float64(t.plan.steady.overlap(0, never))
	v := Values{
		Over: 100 * t.over, Under: 100 * (1 - t.mine/t.exact),
		OutageOver: 100 * t.outageOver, OutageUnder: 100 * (1 - t.outageMine/t.outageExact),
		EnforceMillis: float64(t.enforce) / float64(time.Millisecond),
		FalseDenials:  100 * t.falselyRefused / t.offered,
		Offered:       t.offered, Admitted: t.admitted,
		Jain:      jain(t.pods),
		ExactMean: t.exact / steady, AdmittedMean: t.mine / steady,
	}
	nan := math.NaN()
	if t.offered == 0 {
		v.Over, v.OutageOver, v.EnforceMillis, v.FalseDenials = nan, nan, nan, nan
	}
	if len(t.plan.outages) == 0 {
		v.OutageOver = nan
	}
	if t.exact == 0 {
		v.Under = nan
	}
	if t.outageExact == 0 {
		v.OutageUnder = nan
	}
	return v
}

// jain is Jain's index over the parts of their demand that pods had admitted: 1 if all fared alike, 1/n if one had
// everything. NaN if nothing was admitted.
func jain(pods []share) float64 {
	var n, sum, squares float64
	for _, p := range pods {
		if p.offered > 0 {
			x := p.admitted / p.offered
			n, sum, squares = n+1, sum+x, squares+x*x
		}
	}
	return sum * sum / (n * squares)
}

func (t *tally) series() *Series {
	n := len(t.bins)
	s := &Series{Bin: time.Duration(t.plan.bin) * grain, Limit: make([]float64, n), Offered: make([]float64, n),
		Admitted: make([]float64, n), Exact: make([]float64, n), Window: make([]float64, n)}
	limit := 0.0
	for i, b := range t.bins {
		limit += t.allowed[i]
		from := int64(i) * t.plan.bin
		seconds := (time.Duration(min(t.plan.bin, t.plan.steady.to-from)) * grain).Seconds()
		s.Limit[i], s.Window[i] = limit, b.fill
		s.Offered[i], s.Admitted[i], s.Exact[i] = b.offered/seconds, b.admitted/seconds, b.exact/seconds
	}
	return s
}
