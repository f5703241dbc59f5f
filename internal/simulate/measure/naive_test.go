package measure

import (
	"math"
	"slices"
	"time"

	"github.com/weirproxy/weir/internal/quota"
)

// event is a request, or a change of the rule, at ms.
type event struct {
	ms     int64
	pod    int
	units  int64
	answer Answer
	exact  bool // filled in as the run goes
	rule   *quota.Rule
}

// naive measures a log as the definitions say it, from the whole log each time.
type naive struct {
	o    *Options
	rule *quota.Rule
	log  []event // so far

	changes []int // indices in log of changes of the rule

	over, outageOver float64
	falselyRefused   int64
	full             int // index in log of the request that filled the window; -1: none
	fill             []float64
	bin              int64
}

func newNaive(rule *quota.Rule, o *Options, bin int64, bins int) *naive {
	return &naive{o: o, rule: rule, over: -1, outageOver: -1, full: -1, bin: bin, fill: make([]float64, bins)}
}

type measured func(e *event) int64

func admittedUnits(e *event) int64 {
	if e.rule == nil && e.answer == Admitted {
		return e.units
	}
	return 0
}

func exactUnits(e *event) int64 {
	if e.rule == nil && e.exact {
		return e.units
	}
	return 0
}

// scale and amount as a bucket counts them, so that all is whole numbers.
func (n *naive) scale() int64 {
	if n.rule.Algorithm == quota.TokenBucket {
		return n.rule.Window.Milliseconds()
	}
	return 1
}

func (n *naive) amount() int64 { return int64(n.rule.Amount()) * n.scale() }

// content at ms of the events of log.
func (n *naive) content(log []event, ms int64, of measured) int64 {
	var sum, most int64
	for i := len(log) - 1; i >= 0; i-- {
		e := &log[i]
		switch n.rule.Algorithm {
		case quota.TokenBucket:
			sum += of(e) * n.scale()
			most = max(most, sum-n.drained(e.ms, ms))
		case quota.Calendar:
			if n.periodOf(e.ms) == n.periodOf(ms) {
				most += of(e)
			}
		default:
			if e.ms > ms-n.rule.Window.Milliseconds() {
				most += of(e)
			}
		}
	}
	return most
}

// drained from a bucket between two times, by the rules in force.
func (n *naive) drained(from, to int64) (sum int64) {
	for k, i := range n.changes {
		since, until := max(n.log[i].ms, from), to
		if k+1 < len(n.changes) {
			until = min(n.log[n.changes[k+1]].ms, to)
		}
		sum += max(until-since, 0) * int64(n.log[i].rule.Limit)
	}
	return sum
}

func (n *naive) periodOf(ms int64) quota.Millis {
	start, _ := quota.PeriodAt(n.rule.Period, n.rule.Location, n.o.Start+quota.Millis(ms))
	return start
}

// excess over what may be, over the limit.
func (n *naive) excess(ms int64) float64 {
	may := n.amount()
	if len(n.changes) > 1 {
		may = max(may, n.content(n.log[:n.changes[len(n.changes)-1]], ms, admittedUnits))
	}
	return float64(n.content(n.log, ms, admittedUnits)-may) / float64(n.amount())
}

func (n *naive) outage(ms int64) bool {
	return slices.ContainsFunc(n.o.Outages, func(o Span) bool {
		return ms >= o.From.Milliseconds() && ms < o.To.Milliseconds()
	})
}

// tick looks at the content as ms begins.
func (n *naive) tick(ms int64) {
	if ms%n.bin == 0 {
		n.noteFill(ms)
	}
	if n.outage(ms) && !n.outage(ms-1) {
		n.outageOver = max(n.outageOver, n.excess(ms))
	}
}

func (n *naive) noteFill(ms int64) {
	fill := float64(n.content(n.log, ms, admittedUnits)) / float64(n.amount())
	n.fill[ms/n.bin] = max(n.fill[ms/n.bin], fill)
}

func (n *naive) exact(ms, units int64) bool {
	return n.content(n.log, ms, exactUnits)+units*n.scale() <= n.amount()
}

func (n *naive) take(e event) {
	if e.rule != nil {
		n.rule = e.rule
		n.changes = append(n.changes, len(n.log))
		n.log = append(n.log, e)
		n.noteFill(e.ms)
		return
	}
	before := n.content(n.log, e.ms, admittedUnits)
	if e.answer == Refused && float64(before) < 0.98*float64(n.amount()) && before+e.units*n.scale() <= n.amount() {
		n.falselyRefused += e.units
	}
	n.log = append(n.log, e)
	if e.answer != Admitted || e.units == 0 {
		return
	}
	n.noteFill(e.ms)
	x := n.excess(e.ms)
	n.over = max(n.over, x)
	if n.outage(e.ms) {
		n.outageOver = max(n.outageOver, x)
	}
	if n.full < 0 && n.content(n.log, e.ms, admittedUnits)+n.scale() > n.amount() {
		n.full = len(n.log) - 1
	}
}

// enforce tries every 50 ms from the request on that filled the window, against the rule in force at its end.
func (n *naive) enforce() float64 {
	if n.full < 0 {
		return 0
	}
	from := n.log[n.full].ms
	for s := from; ; s++ {
		rule, sum := n.log[0].rule, int64(0)
		for i, e := range n.log {
			if e.rule != nil && e.ms < s+50 {
				rule = e.rule
			}
			if i > n.full && e.ms >= s && e.ms < s+50 {
				sum += admittedUnits(&n.log[i])
			}
		}
		if float64(sum) <= 1.05*rule.RateAt(n.o.Start)*0.05*(1+1e-9) {
			return float64(s - from)
		}
	}
}

// mean window content from Steady to End.
func (n *naive) mean(of measured) float64 {
	rule := *n.rule
	if rule.Algorithm == quota.TokenBucket {
		rule.Algorithm = quota.SlidingWindow
	}
	plain := naive{o: n.o, rule: &rule}
	from, to := n.o.Steady.Milliseconds(), n.o.End.Milliseconds()
	sum := int64(0)
	for ms, k := from, 0; ms < to; ms++ {
		for k < len(n.log) && n.log[k].ms <= ms {
			k++
		}
		sum += plain.content(n.log[:k], ms, of)
	}
	return float64(sum) / float64(to-from)
}

func (n *naive) values() Values {
	v := Values{Over: 100 * n.over, OutageOver: 100 * n.outageOver, EnforceMillis: n.enforce(),
		AdmittedMean: n.mean(admittedUnits), ExactMean: n.mean(exactUnits)}
	var mine, exact, sum, squares, pods float64
	offered, admitted := map[int]float64{}, map[int]float64{}
	for i := range n.log {
		e := &n.log[i]
		if e.rule != nil {
			continue
		}
		if n.outage(e.ms) {
			mine += float64(admittedUnits(e))
			exact += float64(exactUnits(e))
		}
		if e.answer != RefusedElsewhere {
			offered[e.pod] += float64(e.units)
			admitted[e.pod] += float64(admittedUnits(e))
			v.Offered += float64(e.units)
			v.Admitted += float64(admittedUnits(e))
		}
	}
	for pod, all := range offered {
		if all == 0 {
			continue
		}
		x := admitted[pod] / all
		pods, sum, squares = pods+1, sum+x, squares+x*x
	}
	v.Jain = sum * sum / squares / pods
	v.FalseDenials = 100 * float64(n.falselyRefused) / v.Offered
	v.Under = missing(v.AdmittedMean, v.ExactMean)
	v.OutageUnder = missing(mine, exact)
	if v.Offered == 0 {
		v.Over, v.OutageOver, v.EnforceMillis = math.NaN(), math.NaN(), math.NaN()
	}
	if len(n.o.Outages) == 0 {
		v.OutageOver = math.NaN()
	}
	return v
}

func missing(mine, exact float64) float64 {
	if exact == 0 {
		return math.NaN()
	}
	return 100 * (1 - mine/exact)
}

func ms(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
