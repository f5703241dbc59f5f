package quota

import (
	"math"
	"time"
)

const (
	reportLag   = 30 * time.Millisecond // of a report beyond the flush period, in both sides' decay
	leastDemand = 0.01                  // requests/s; less is none
	horizonLag  = 45 * time.Millisecond // control horizon H = flush + tick + this
	jumpCount   = 8                     // requests in a flush that lift the estimate at once
)

// decay is the worth of a demand of d requests/s, t seconds after its report: a time constant of 10
// requests, within 0.1 to 1 s. Pod and owner use it alike, or shares would not sum to 1.
func decay(d, t float64) float64 {
	if t <= 0 || d <= 0 {
		return max(d, 0)
	}
	if d > 100 {
		fall := 0.1 * math.Log(d/100)
		if t <= fall {
			return d * math.Exp(-t/0.1)
		}
		d, t = 100, t-fall
	}
	if d > 10 {
		fall := 1 - 10/d // from 1/d + t/10 = 1/10
		if t <= fall {
			return 1 / (1/d + t/10)
		}
		d, t = 10, t-fall
	}
	return d * math.Exp(-t)
}

// present is a reported demand at owner time t, requests/s.
func present(d float64, appended, t Millis, flush time.Duration) float64 {
	lag := time.Duration(t-appended)*time.Millisecond - flush - reportLag
	if d = decay(d, lag.Seconds()); d < leastDemand {
		return 0
	}
	return d
}

// horizon is H, seconds.
func horizon(flush, tick time.Duration) float64 { return (flush + tick + horizonLag).Seconds() }

// estimator is a pod's estimate of one counter's demand.
type estimator struct {
	rate     float64 // requests/s
	mean     float64 // units a request
	at       Time
	requests uint64 // counted so far
	offered  uint64
}

// update takes in what came until now, at a flush period of f.
func (e *estimator) update(now Time, requests, offered uint64, f time.Duration) {
	x := float64(requests - e.requests)
	if x <= 0 {
		return
	}
	e.mean = meanCost(e.mean, float64(offered-e.offered)/x)
	dt := max(time.Duration(now-e.at), time.Millisecond)
	if e.requests == 0 { // the counter was made when its first request came: nobody asked before
		dt = max(dt, f)
	}
	if dt > f && f > 0 {
		e.rate, dt = decay(e.rate, (dt-f).Seconds()), f
	}
	now64 := x / dt.Seconds()
	if x >= jumpCount {
		e.rate = max(e.rate, now64/2)
	}
	tau := 1.0
	if e.rate > 0 {
		tau = min(max(10/e.rate, 0.1), 1)
	}
	e.rate += (1 - math.Exp(-dt.Seconds()/tau)) * (now64 - e.rate)
	e.at, e.requests, e.offered = now, requests, offered
}

// present is the estimate now: a report that no request caused says what has become of it.
func (e *estimator) present(now Time, f time.Duration) float64 {
	return decay(e.rate, (time.Duration(now-e.at) - f).Seconds())
}

// meanCost smooths the units a request, so that one dear request does not swing the shares.
func meanCost(old, sample float64) float64 {
	if old == 0 {
		return sample
	}
	return old + (sample-old)/4
}

func one(mean float64) float64 {
	if mean > 0 {
		return mean
	}
	return 1
}
