package quotasim

import (
	"github.com/weirproxy/weir/internal/quota"
)

// exact is a limiter without delay: what under-admission is measured against.
type exact struct {
	rule   *quota.Rule
	window int
	log    []int
	sum    float64
	tokens float64
	now    int
}

func newExact(r *quota.Rule) exact {
	return exact{rule: r, window: int(r.WindowAt(epoch).Milliseconds()), tokens: r.Amount()}
}

func (e *exact) advance(ms int64) {
	e.log = append(e.log, 0)
	e.now = int(ms)
	e.tokens = min(e.tokens+e.rule.RateAt(epoch)/1000, e.rule.Amount())
	if old := e.now - e.window; old >= 0 {
		e.sum -= float64(e.log[old])
	}
}

func (e *exact) take(n int) {
	x := float64(n)
	if e.rule.Algorithm == quota.TokenBucket {
		if e.tokens < x {
			return
		}
		e.tokens -= x
	} else if e.sum+x > e.rule.Limit {
		return
	}
	e.sum += x
	e.log[e.now] += n
}

func (e *exact) admitted() int { return e.log[e.now] }

func (s *sim) measure() {
	window := int(s.Rule.WindowAt(epoch).Milliseconds())
	if s.Rule.Algorithm == quota.TokenBucket {
		s.res.Over = 100 * bucketExcess(s.res.Admitted, s.Rule.RateAt(epoch)/1000, s.Rule.Burst) / s.Rule.Burst
		window = 1000
	} else {
		worst, _ := windows(s.res.Admitted, window, 0)
		s.res.Over = 100 * (worst/s.Rule.Limit - 1)
	}
	_, mine := windows(s.res.Admitted, window, int(s.Steady.Milliseconds()))
	_, exact := windows(s.res.Exact, window, int(s.Steady.Milliseconds()))
	if exact > 0 {
		s.res.Under = 100 * (1 - mine/exact)
	}
}

// windows are the fullest and, from a time on, the mean content of all windows.
func windows(log []int, window, from int) (worst, mean float64) {
	content, n := 0, 0
	for i, x := range log {
		content += x
		if i >= window {
			content -= log[i-window]
		}
		worst = max(worst, float64(content))
		if i >= from {
			mean += float64(content)
			n++
		}
	}
	return worst, mean / float64(max(n, 1))
}

// bucketExcess is the largest excess over burst + rate·t of any interval.
func bucketExcess(log []int, rate, burst float64) float64 {
	debt, worst := 0.0, 0.0
	for _, x := range log {
		debt = max(debt-rate, 0) + float64(x)
		worst = max(worst, debt)
	}
	return worst - burst
}
