package quota

import (
	"math"
	"time"
)

// view is one copy of the decision as a check uses it: everything that can be computed once is. Rates are
// per ns, times are pod time. A Cell holds one, and a Fresh a second one of each that is being written.
type view struct {
	flags          uint64
	at             Time   // receipt of the record
	inc, incOffers uint64 // admitted and offered units that the decision includes
	r, k1, k2, k3  float64
	m, w, lr       float64
	s, lam, phi, q float64
	g, di, tau0    float64
	over           float64 // overcommit: units, or a part of X if fixed
	mean           float64 // units a request
	lead           float64
	blocked, reset Time // 0: none
	period         uint64
}

const viewWords = CellWords - wView

const (
	flagRecord = 1 << iota
	flagPaced
	flagStrict
	flagLearned
	flagFixed
	flagBucket
	flagCalendar
)

func (v *view) has(flag uint64) bool { return v.flags&flag != 0 }

// write publishes v: first in a spare copy of f, which checks use while the cell's own is written, then in the cell. A
// cell that no check knows yet may be written while all spares are in use; another one's would be torn for a moment,
// which at worst misjudges a request. Calls for one cell do not overlap.
func (c *Cell) write(f *Fresh, v *view) {
	words := v.words()
	place := c.writeSpare(f, &words)
	c.view().store(&words)
	c.publish(placeCell)
	f.spares.put(place)
}

// writeSpare publishes the words in a spare, if there is one, and returns its place.
func (c *Cell) writeSpare(f *Fresh, words *[viewWords]uint64) (place uint64) {
	place = f.spares.take()
	if place != placeCell {
		f.spares.at(place).store(words)
		c.publish(place)
	}
	return place
}

// publish makes the copy at place the one in force.
func (c *Cell) publish(place uint64) {
	c.w[wVersion].Store(c.w[wVersion].Load()&^placeMask + placeStep | place)
}

// read fills v. A copy is written only while the version does not name it, so that what was read under one version is
// whole. A write that comes in between makes it read once more, at most twice: more than two within these few
// ns may leave a torn view, which only misjudges one request. f is the Fresh that the cell is written with.
func (c *Cell) read(f *Fresh, v *view) {
	version := c.w[wVersion].Load()
	for range 3 {
		words := c.view()
		if place := version & placeMask; place != placeCell {
			words = f.spares.at(place)
		}
		v.load(words)
		again := c.w[wVersion].Load()
		if again == version {
			return
		}
		version = again
	}
}

func (c *Cell) view() *viewCopy { return (*viewCopy)(c.w[wView:]) }

// viewCopy is a view's words in memory that checks read.
type viewCopy [viewWords]atomicWord

func (w *viewCopy) store(words *[viewWords]uint64) {
	for i, x := range words {
		w[i].Store(x)
	}
}

func (v *view) words() [viewWords]uint64 {
	return [...]uint64{
		v.flags, uint64(v.at), v.inc, v.incOffers, bits(v.r), bits(v.k1), bits(v.k2), bits(v.k3),
		bits(v.m), bits(v.w), bits(v.lr), bits(v.s), bits(v.lam), bits(v.phi), bits(v.q), bits(v.g),
		bits(v.di), bits(v.tau0), bits(v.over), bits(v.mean), bits(v.lead), uint64(v.blocked), uint64(v.reset), v.period,
	}
}

func (v *view) load(w *viewCopy) {
	v.flags = w[0].Load()
	v.at = Time(w[1].Load())
	v.inc, v.incOffers = w[2].Load(), w[3].Load()
	v.r, v.k1, v.k2, v.k3 = float(&w[4]), float(&w[5]), float(&w[6]), float(&w[7])
	v.m, v.w, v.lr = float(&w[8]), float(&w[9]), float(&w[10])
	v.s, v.lam, v.phi, v.q = float(&w[11]), float(&w[12]), float(&w[13]), float(&w[14])
	v.g, v.di, v.tau0 = float(&w[15]), float(&w[16]), float(&w[17])
	v.over, v.mean, v.lead = float(&w[18]), float(&w[19]), float(&w[20])
	v.blocked, v.reset = Time(w[21].Load()), Time(w[22].Load())
	v.period = w[23].Load()
}

func bits(f float64) uint64             { return math.Float64bits(f) }
func float(w *atomicWord) float64       { return floatOf(w.Load()) }
func floatOf(w uint64) float64          { return math.Float64frombits(w) }
func perNano(perSecond float64) float64 { return perSecond / float64(time.Second) }

// knots are the curve's h1 and h2 for a window of w ns.
func knots(w float64) (h1, h2 float64) {
	return min(float64(60*time.Millisecond), w/8), min(float64(300*time.Millisecond), w/3)
}

// curve is X, the units left age ns after the decision if nobody took any: what is left plus what
// leaves the window. It goes on past W at lr, for the fallback; capped says to end at M.
func (v *view) curve(age float64, capped bool) float64 {
	x := v.r
	switch {
	case v.has(flagBucket):
		x += v.k1 * age
	case v.has(flagCalendar): // the reset is not on the curve
	default:
		h1, h2 := knots(v.w)
		switch {
		case age <= h1:
			x += v.k1 * age
		case age <= h2:
			x += v.k1*h1 + v.k2*(age-h1)
		case age <= v.w || capped:
			x += v.k1*h1 + v.k2*(h2-h1) + v.k3*(min(age, v.w)-h2)
		default:
			x = v.m + v.lr*(age-v.w)
		}
	}
	if capped {
		return min(x, v.m)
	}
	return x
}

// reach is the age at which the curve is at least x: the inverse of curve. It is v.w at most, or for
// a bucket what it takes to fill.
func (v *view) reach(x float64) float64 {
	left := min(x, v.m) - v.r
	if left <= 0 {
		return 0
	}
	if v.has(flagBucket) {
		return left / v.k1
	}
	h1, h2 := knots(v.w)
	if e := v.k1 * h1; left <= e {
		return left / v.k1
	} else if left -= e; left <= v.k2*(h2-h1) {
		return h1 + left/v.k2
	}
	left -= v.k2 * (h2 - h1)
	if v.k3 <= 0 {
		return v.w
	}
	return min(h2+left/v.k3, v.w)
}
