package designs

import "time"

// central asks one store at each request, which counts it at once: what a request waits for is not simulated, but each is a
// call. While the store is away everything passes, as Envoy's rate limit filter does unless told otherwise.
type central struct {
	*Fleet
	take func(now time.Duration) bool
}

func (d *central) Step(time.Duration) {}

func (d *central) Allow(now time.Duration, _ int) bool {
	d.calls++
	return d.gone(now) || d.take(now)
}

// newFixed counts by windows of the store's clock, whose boundaries fall anywhere in the run: a key for each window that
// is incremented and expires.
func newFixed(f *Fleet) Design {
	var (
		phase  = f.below(f.Window)
		number = time.Duration(-1)
		count  float64
	)
	return &central{f, func(now time.Duration) bool {
		if n := (now + phase) / f.Window; n != number {
			number, count = n, 0
		}
		count++
		return count <= f.Limit
	}}
}

// newExact admits while the window that ends now has room.
func newExact(f *Fleet) Design {
	w := newWindow(step, int(f.Window/step))
	return &central{f, func(now time.Duration) bool {
		w.advance(now)
		if float64(w.content) >= f.Limit {
			return false
		}
		w.add(now, 1)
		return true
	}}
}
