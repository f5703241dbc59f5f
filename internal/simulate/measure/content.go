package measure

import (
	"time"

	"github.com/weirproxy/weir/internal/quota"
)

const never = int64(1) << 62

// level is what a counter holds at one time, in the content's own unit (see scale): of what was admitted, and of what
// an exact limiter would have.
type level struct {
	mine, exact float64
	// carried is what is left of mine from before the newest change of the limit.
	carried float64
}

func (l *level) forget(mine, exact float64) {
	l.mine -= mine
	l.exact -= exact
	l.carried = max(l.carried-mine, 0)
}

func (l *level) clear() { *l = level{} }

// content is how an algorithm forgets. Times are ms of the run and never go back.
type content interface {
	setRule(*quota.Rule)
	// scale is what one unit counts for in a level: 1, or what keeps a bucket's arithmetic in whole numbers.
	scale() float64
	// advance takes from l what no longer counts at ms.
	advance(l *level, ms int64)
	// add charges amounts, scaled, at the time of the last advance.
	add(l *level, mine, exact float64)
	// until is when units admitted at the time of the last advance no longer count in the mean content.
	until() int64
}

func newContent(r *quota.Rule, p *plan) content {
	var c content
	switch r.Algorithm {
	case quota.TokenBucket:
		c = &bucket{}
	case quota.Calendar:
		c = &period{start: p.start}
	default:
		c = &window{}
	}
	c.setRule(r)
	return c
}

// windowMillis is the length of a window, ms; at least 1.
func windowMillis(w time.Duration) int64 { return max(int64(w/grain), 1) }
