package measure

import "time"

// A limit counts as enforced once frontMillis pass at no more than frontSlack times its rate.
const (
	frontMillis = 50
	frontSlack  = 1.05
)

// front finds how long it takes from the moment a window is full until its limit is enforced: the first frontMillis
// from then on, at any ms, in which no more than bound was admitted. What filled the window is not counted.
type front struct {
	from, at int64 // ms; at is the start that is tried
	last     int64 // ms of the last unit
	bound    float64
	sum      float64 // units of [at, at+frontMillis)
	units    [frontMillis]float64
}

func newFront(ms int64, rate float64) *front {
	f := &front{from: ms, at: ms, last: -1}
	f.setRate(rate)
	return f
}

// setRate sets the limit's rate, units/s. A bound that is a whole number is not missed by rounding.
func (f *front) setRate(rate float64) {
	f.bound = rate*frontSlack*(frontMillis*grain).Seconds() + 1e-9*rate
}

// advance says whether the limit was seen enforced before ms.
func (f *front) advance(ms int64) bool {
	for ; f.at+frontMillis <= ms; f.at++ {
		if f.sum <= f.bound || f.at > f.last {
			return true
		}
		first := &f.units[f.at%frontMillis]
		f.sum -= *first
		*first = 0
	}
	return false
}

// add counts units admitted at ms, once advance has been there.
func (f *front) add(ms int64, units float64) {
	f.last = ms
	f.units[ms%frontMillis] += units
	f.sum += units
}

func (f *front) took() time.Duration { return time.Duration(f.at-f.from) * grain }
