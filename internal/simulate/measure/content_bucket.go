package measure

import (
	"time"

	"github.com/weirproxy/weir/internal/quota"
)

// bucket is a token bucket as debt: what was taken and has not yet flowed back. The largest debt is the largest
// excess of any interval over rate × t. Debt is kept in units × ms of the rate's window, so that it flows back by
// the limit each millisecond, and whole units stay whole numbers.
type bucket struct {
	limit  float64 // units a window
	window float64 // ms
	length int64   // the window of the mean content, ms
	now    int64
}

func (b *bucket) setRule(r *quota.Rule) {
	w := r.Window
	if w <= 0 {
		w = time.Second // as quota.Rule's RateAt has it
	}
	b.limit, b.window, b.length = r.Limit, float64(w)/float64(grain), windowMillis(w)
}

func (b *bucket) scale() float64 { return b.window }
func (b *bucket) until() int64   { return b.now + b.length }

func (b *bucket) advance(l *level, ms int64) {
	back := float64(ms-b.now) * b.limit
	b.now = ms
	l.mine = max(l.mine-back, 0)
	l.exact = max(l.exact-back, 0)
	l.carried = max(l.carried-back, 0)
}

func (b *bucket) add(l *level, mine, exact float64) {
	l.mine += mine
	l.exact += exact
}
