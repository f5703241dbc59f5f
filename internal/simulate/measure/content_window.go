package measure

import "github.com/weirproxy/weir/internal/quota"

// window holds (t-length, t]: a queue of the milliseconds in which something was admitted, so that it takes memory
// for what is in the window and not for its length.
type window struct {
	length int64
	now    int64
	slots  []slot // a ring; its size is a power of two
	head   int
	n      int
}

type slot struct {
	ms          int64
	mine, exact float64
}

const firstSlots = 4

func (w *window) setRule(r *quota.Rule) { w.length = windowMillis(r.Window) }
func (w *window) scale() float64        { return 1 }
func (w *window) until() int64          { return w.now + w.length }

func (w *window) advance(l *level, ms int64) {
	w.now = ms
	old := ms - w.length
	for w.n > 0 {
		s := &w.slots[w.head]
		if s.ms > old {
			return
		}
		l.forget(s.mine, s.exact)
		w.head = (w.head + 1) & (len(w.slots) - 1)
		w.n--
	}
}

func (w *window) add(l *level, mine, exact float64) {
	l.mine += mine
	l.exact += exact
	if w.n > 0 {
		if s := w.slot(w.n - 1); s.ms == w.now {
			s.mine += mine
			s.exact += exact
			return
		}
	}
	if w.n == len(w.slots) {
		w.grow()
	}
	*w.slot(w.n) = slot{w.now, mine, exact}
	w.n++
}

func (w *window) slot(i int) *slot { return &w.slots[(w.head+i)&(len(w.slots)-1)] }

func (w *window) grow() {
	slots := make([]slot, max(2*len(w.slots), firstSlots))
	copied := copy(slots, w.slots[w.head:])
	copy(slots[copied:], w.slots[:w.head])
	w.slots, w.head = slots, 0
}
