package measure

import (
	"math"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weirproxy/weir/internal/quota"
)

func drawRule(t *rapid.T, a quota.Algorithm) *quota.Rule {
	r := &quota.Rule{Algorithm: a, Limit: float64(rapid.IntRange(1, 30).Draw(t, "limit"))}
	switch a {
	case quota.TokenBucket:
		r.Window = ms(rapid.Int64Range(1, 800).Draw(t, "window"))
		r.Burst = float64(rapid.IntRange(1, 20).Draw(t, "burst"))
	case quota.Calendar:
		r.Period = quota.Hour
	default:
		r.Window = ms(rapid.Int64Range(1, 800).Draw(t, "window"))
	}
	return r
}

// changed is r with other amounts.
func changed(t *rapid.T, r *quota.Rule) *quota.Rule {
	out := *r
	out.Limit = float64(rapid.IntRange(1, 30).Draw(t, "new limit"))
	if r.Algorithm == quota.TokenBucket {
		out.Burst = float64(rapid.IntRange(1, 20).Draw(t, "new burst"))
	}
	return &out
}

func drawOptions(t *rapid.T) *Options {
	o := &Options{
		Start:  quota.Millis(3_600_000*500_000 - 700), // the hour ends 0.7 s into the run
		Steady: ms(rapid.Int64Range(0, 800).Draw(t, "steady")),
		End:    ms(rapid.Int64Range(900, 2000).Draw(t, "end")),
		Bins:   rapid.IntRange(1, 60).Draw(t, "bins"),
	}
	for range rapid.IntRange(0, 2).Draw(t, "outages") {
		from := rapid.Int64Range(0, 1500).Draw(t, "from")
		o.Outages = append(o.Outages, Span{ms(from), ms(from + rapid.Int64Range(1, 400).Draw(t, "for"))})
	}
	return o
}

// drawEvent draws one after ms. Answers follow the exact limiter often enough for windows to be near their limit.
func drawEvent(t *rapid.T, at int64, rule *quota.Rule) event {
	e := event{ms: at + rapid.SampledFrom([]int64{0, 0, 1, 2, 7, 30, 60, 300}).Draw(t, "gap")}
	kind := rapid.IntRange(0, 19).Draw(t, "kind")
	if kind == 19 {
		e.rule = changed(t, rule)
		return e
	}
	e.pod = rapid.IntRange(0, 3).Draw(t, "pod")
	e.units = rapid.SampledFrom([]int64{1, 1, 1, 2, 5, 0}).Draw(t, "units")
	e.answer = Answer(rapid.IntRange(0, 2).Draw(t, "answer"))
	if kind < 12 {
		e.answer = Admitted
	}
	return e
}

// run feeds the same requests to a meter and to the naive measures.
func run(t *rapid.T, rule *quota.Rule, o *Options) (*RateMeter, *naive) {
	all := NewRateMeter("l", "r", o)
	m := all.Counter(7, rule)
	n := newNaive(rule, o, m.plan.bin, m.plan.bins())
	n.take(event{rule: rule})
	end, now := o.End.Milliseconds(), int64(0)
	for range rapid.IntRange(0, 60).Draw(t, "events") {
		e := drawEvent(t, now, n.rule)
		if e.ms >= end {
			break
		}
		for ; now < e.ms; now++ {
			n.tick(now + 1)
		}
		at := ms(e.ms) + time.Duration(rapid.IntRange(0, 999_999).Draw(t, "within the ms"))
		if e.rule != nil {
			m.SetRule(at, e.rule)
			n.take(e)
			continue
		}
		got := m.Exact(at, uint64(e.units))
		if want := n.exact(e.ms, e.units); got != want {
			t.Fatalf("at %d ms: exact limiter says %v, want %v", e.ms, got, want)
		}
		e.exact = got && rapid.IntRange(0, 9).Draw(t, "refused by another rate") > 0
		m.Offer(at, e.pod, uint64(e.units), e.exact, e.answer)
		n.take(e)
	}
	for ; now < end-1; now++ {
		n.tick(now + 1)
	}
	return all, n
}

func near(a, b float64) bool {
	return math.IsNaN(a) && math.IsNaN(b) || math.Abs(a-b) <= 1e-9*max(1, math.Abs(a))
}

func compare(t *rapid.T, got, want Values) {
	g, w := reflect.ValueOf(got), reflect.ValueOf(want)
	for i := range g.NumField() {
		if a, b := g.Field(i).Float(), w.Field(i).Float(); !near(a, b) {
			t.Fatalf("%s is %v, want %v", g.Type().Field(i).Name, a, b)
		}
	}
}

func TestMeasuresAreWhatTheirDefinitionsSay(t *testing.T) {
	for name, a := range map[string]quota.Algorithm{
		"SlidingWindow": quota.SlidingWindow, "TokenBucket": quota.TokenBucket, "Calendar": quota.Calendar,
	} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				all, n := run(t, drawRule(t, a), drawOptions(t))
				r := all.Result()
				compare(t, r.Values, n.values())
				for i, fill := range r.Series.Window {
					if !near(fill, n.fill[i]) {
						t.Fatalf("window in bin %d is %v, want %v", i, fill, n.fill[i])
					}
				}
				compareSeries(t, r.Series, n)
			})
		})
	}
}

func compareSeries(t *rapid.T, s *Series, n *naive) {
	offered, admitted, exact := make([]float64, len(s.Limit)), make([]float64, len(s.Limit)), make([]float64, len(s.Limit))
	for i := range n.log {
		e := &n.log[i]
		if b := e.ms / n.bin; e.rule == nil {
			if e.answer != RefusedElsewhere {
				offered[b] += float64(e.units)
			}
			admitted[b] += float64(admittedUnits(e))
			exact[b] += float64(exactUnits(e))
		}
	}
	for b := range offered {
		length := min(n.bin, n.o.End.Milliseconds()-int64(b)*n.bin)
		per := 1000 / float64(length)
		if !near(s.Offered[b], offered[b]*per) || !near(s.Admitted[b], admitted[b]*per) || !near(s.Exact[b], exact[b]*per) {
			t.Fatalf("bin %d: %v %v %v, want %v %v %v a bin", b, s.Offered[b], s.Admitted[b], s.Exact[b], offered[b], admitted[b], exact[b])
		}
	}
}
