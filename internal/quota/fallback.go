package quota

import (
	"math"
	"time"
)

// judgeStale answers when no header is fresh: by the rule's failure mode, of which the default spends
// the pod's share of what the last decision still lets regrow (ALGORITHM 3.4).
func judgeStale(now Time, t *Take, v *view, rnd *Rand, o *Outcome) {
	o.Basis = BasisFailureMode
	c := float64(t.Cost)
	switch t.Rule.Failure {
	case FailAllow, FailDeny:
		o.OK = t.Rule.Failure == FailAllow
		v.whole(now, o, v.m-float64(t.Cell.own(o.bucket)), c)
		if !o.OK {
			o.RetryAfter = t.Rule.staleAfter()
		}
		return
	}
	o.Basis = BasisFallback
	n, _ := t.Fleet.Pods()
	if v.has(flagRecord) {
		judgeShare(now, t, v, n, rnd, o)
	} else {
		judgeEven(now, t, v, n, rnd, o)
	}
}

// judgeEven: without a record the share is 1/n of the amount a window. What is no whole request is
// drawn for, once a window's worth.
func judgeEven(now Time, t *Take, v *view, n int, rnd *Rand, o *Outcome) {
	own, c := float64(t.Cell.own(o.bucket)), float64(t.Cost)
	share := v.m / float64(n)
	o.OK = own+c <= share
	if part := share - own; !o.OK && part > 0 {
		since := float64(uint64(now) - t.Cell.w[wDraw].Load())
		chance := min(part, math.Mod(share, c)) * min(since/v.w, 1)
		o.OK = rnd.Float64()*c < chance
		o.drawn = drawChance
	}
	v.whole(now, o, share-own, c)
	if !o.OK {
		o.RetryAfter = v.nextWindow(now)
	}
}

// judgeShare: the share of the last decision, at least floor/n, spent as a token bucket of s*M that fills
// with the curve. A credit of less than the cost is drawn for whole.
func judgeShare(now Time, t *Take, v *view, n int, rnd *Rand, o *Outcome) {
	s := min(max(v.s, t.Rule.Floor/float64(n)), 1)
	own, c := float64(t.Cell.own(o.bucket)), float64(t.Cost)
	o.Age = time.Duration(now - v.at)
	most := s * v.m
	age := v.renew(now, t.Fresh)
	credit := t.Cell.credit(now, v, s, age, o)
	if own+c <= max(most, c) && credit > 0 {
		if credit >= c {
			o.OK = true
		} else {
			o.OK = rnd.Float64()*c < credit
			o.fraction, o.drawn = credit, drawCredit
		}
	}
	v.whole(now, o, min(most-own, max(credit, 0)), c)
	if !o.OK {
		o.RetryAfter = fallbackWait(now, v, s, c-credit)
	}
}

// credit is what the pod may still spend of s of the curve. Beyond s*M credit is forfeited.
func (c *Cell) credit(now Time, v *view, s, age float64, o *Outcome) float64 {
	if v.reset != 0 && now >= v.reset {
		return s*v.m - float64(c.own(o.bucket))
	}
	u := float64(int64(c.Admitted() - v.inc))
	x := v.curve(age, false)
	credit := s*x - u - float(&c.w[wForfeit])
	if over := credit - s*v.m; over > 0 {
		c.addFloat(wForfeit, over)
		credit -= over
	}
	return credit
}

func fallbackWait(now Time, v *view, s, missing float64) time.Duration {
	if v.has(flagCalendar) {
		return v.nextWindow(now)
	}
	if s*v.lr <= 0 {
		return time.Duration(v.w)
	}
	return time.Duration(min(max(missing, 0)/(s*v.lr), v.w)) + time.Millisecond
}
