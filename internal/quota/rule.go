package quota

import "time"

// DefaultStaleAfter is the age of the newest header beyond which a pod falls back, where a Rule
// names none.
const DefaultStaleAfter = 500 * time.Millisecond

// strictUnits is how many units of the amount each pod must have for Strict to mean anything:
// below it shares fall under a request and Strict would refuse nearly everything.
const strictUnits = 4

// longest bounds the time that a token bucket takes to fill, ns: burst and rate may be any that a policy
// says, and a duration ends at 292 years.
const longest = float64(100 * 365 * 24 * time.Hour)

// Amount is M, units: the limit, or a token bucket's burst.
func (r *Rule) Amount() float64 {
	if r.Algorithm == TokenBucket {
		return r.Burst
	}
	return r.Limit
}

// WindowAt is W at owner time t: the window, the time a token bucket takes to fill, or the length of
// the civil period that holds t. At least 1 ms.
func (r *Rule) WindowAt(t Millis) time.Duration {
	w := r.Window
	switch r.Algorithm {
	case TokenBucket:
		if r.Limit > 0 {
			w = time.Duration(min(r.Burst*float64(r.Window)/r.Limit, longest))
		}
	case Calendar:
		start, end := PeriodAt(r.Period, r.Location, t)
		w = time.Duration(end-start) * time.Millisecond
	}
	return max(w, time.Millisecond)
}

// RateAt is lr at owner time t, units/s.
func (r *Rule) RateAt(t Millis) float64 {
	if r.Algorithm == TokenBucket {
		if r.Window <= 0 {
			return r.Limit
		}
		return r.Limit / r.Window.Seconds()
	}
	return r.Limit / r.WindowAt(t).Seconds()
}

// StrictUnavailable says that the rule asks for Strict but runs as Normal, since pods live pods
// leave fewer than 4 units of the amount to each.
func (r *Rule) StrictUnavailable(pods int) bool {
	return r.Strict && r.Amount() < strictUnits*float64(max(pods, 1))
}

func (r *Rule) strict(pods int) bool { return r.Strict && !r.StrictUnavailable(pods) }

func (r *Rule) staleAfter() time.Duration {
	if r.StaleAfter > 0 {
		return r.StaleAfter
	}
	return DefaultStaleAfter
}
