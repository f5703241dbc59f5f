package partition

import (
	"math"
	"time"

	"github.com/weirproxy/weir/internal/quota"
)

const (
	fillSlices = 60              // of a window
	fillLate   = 5 * time.Second // a report may be so late, if that is no longer than the window
)

// fill is the meter of a sliding window: how full it was, as it turns out once late reports are in. What the owner
// decides by lacks the units that are still on their way, some 40 ms of them: of a window of 1 s that is 4 %. So each
// window of 60 slices is judged a while after its end, by the units in the slice of their admission.
//
// What is over by e for one window is e units: each window judged counts a sixtieth of its excess.
type fill struct {
	amount  float64
	micros  int64 // W
	late    int64 // slices
	head    int64 // the newest slice
	changed int64 // the newest slice when the amount was changed, from
	was     float64
	now     quota.Millis
	units   []float64 // a ring of all slices of windows not yet judged
	seen    over
}

func newFill(window time.Duration, amount float64, now quota.Millis) *fill {
	f := &fill{amount: amount, micros: max(window.Microseconds(), fillSlices), now: now, changed: math.MinInt64}
	f.late = min(max(fillLate.Microseconds()*fillSlices/f.micros, 1), fillSlices)
	f.units = make([]float64, fillSlices+f.late)
	f.head = f.index(now)
	return f
}

func (f *fill) index(t quota.Millis) int64 { return int64(t) * 1000 * fillSlices / f.micros }

// begins is when a slice begins, ms.
func (f *fill) begins(i int64) float64 { return float64(i) * float64(f.micros) / (1000 * fillSlices) }

// place of a slice in the ring.
func (f *fill) place(i int64) int {
	n := int64(len(f.units))
	return int((i%n + n) % n)
}

func (f *fill) add(from, to, now quota.Millis, n, _ float64) {
	f.advance(now)
	to = min(to, f.now)
	from = min(from, to)
	first, last := f.index(from), f.index(to)
	oldest := f.head - int64(len(f.units)) + 1
	if first == last {
		if last >= oldest {
			f.units[f.place(last)] += n
		}
		return
	}
	length := float64(to - from)
	for i := max(first, oldest); i <= last; i++ {
		within := min(f.begins(i+1), float64(to)) - max(f.begins(i), float64(from))
		f.units[f.place(i)] += n * max(within, 0) / length
	}
}

// advance moves to now, slice by slice, and judges the window that ended so long ago that no report of it is
// expected any more.
func (f *fill) advance(now quota.Millis) {
	if now <= f.now {
		return
	}
	f.now = now
	to := f.index(now)
	for range min(to-f.head, 2*int64(len(f.units))) { // after that all slices are empty
		f.head++
		f.units[f.place(f.head)] = 0
		f.judge(f.head - f.late)
	}
	f.head = to
}

// judge takes in the window that ends with slice e. What came before the amount was changed is not over the new one.
func (f *fill) judge(e int64) {
	var sum, before float64
	first := e - fillSlices + 1
	p := f.place(first)
	for i := first; i <= e; i++ {
		sum += f.units[p]
		if i == f.changed {
			before = sum
		}
		if p++; p == len(f.units) {
			p = 0
		}
	}
	if sum == 0 {
		return
	}
	amount := max(f.amount, before)
	if e <= f.changed {
		amount = f.was
	}
	f.seen.note(sum, amount)
	if x := excess(sum, amount); x > 0 {
		f.seen.units += x / fillSlices
		f.seen.seconds += float64(f.micros) / (1e6 * fillSlices)
	}
}

func (f *fill) setAmount(amount, _ float64, now quota.Millis) {
	f.advance(now)
	f.was, f.amount, f.changed = f.amount, amount, f.head
}

func (f *fill) settle(now quota.Millis, _ float64) over {
	f.advance(now)
	o := f.seen
	f.seen = over{}
	return o
}

// done: even if all that is left were in one window it would not be over.
func (f *fill) done() bool {
	var sum float64
	for _, n := range f.units {
		sum += n
	}
	return sum <= f.amount
}
