package load

import "time"

// Rate is requests per second as a function of the time since the start. It is
// asked at every millisecond, and must not be negative. It is called on one
// goroutine, but may read what others write (a test that steers).
type Rate func(since time.Duration) float64

// Constant is always the same rate.
func Constant(perSecond float64) Rate {
	return func(time.Duration) float64 { return perSecond }
}

// Step is a rate that holds for a time.
type Step struct {
	For       time.Duration
	PerSecond float64
}

// Steps are rates one after the other; after the last there is no load.
func Steps(steps ...Step) Rate {
	return func(since time.Duration) float64 {
		for _, s := range steps {
			if since < s.For {
				return s.PerSecond
			}
			since -= s.For
		}
		return 0
	}
}

// tick is the step in which rates are integrated and requests are sent.
const tick = time.Millisecond

// arrivals turns a rate into due requests: the k-th is due when the integral of
// the rate has grown by k gaps. A gap is 1 for even arrivals, or drawn from an
// exponential distribution of mean 1 for a Poisson process. Integrals are in
// requests.
type arrivals struct {
	rate   Rate
	gap    func() float64
	at     time.Duration // up to which the rate has been integrated
	total  float64       // the integral so far
	nextAt float64       // the integral at which the next request is due
}

func newArrivals(rate Rate, gap func() float64) *arrivals {
	a := &arrivals{rate: rate, gap: gap}
	a.nextAt = gap()
	return a
}

// due integrates up to the given time and returns how many more requests have
// become due. Time that goes back yields none.
func (a *arrivals) due(until time.Duration) int {
	for a.at+tick <= until {
		a.total += a.rate(a.at) * tick.Seconds()
		a.at += tick
	}
	n := 0
	for a.nextAt <= a.total+1e-9 { // the sum of steps may fall short by rounding
		a.nextAt += a.gap()
		n++
	}
	return n
}
