package designs

import (
	"math"
	"time"
)

// dropRatio: pods report what they were offered; the controller estimates the fleet's rate and broadcasts which part of
// the requests to drop, and each pod drops by chance. A ratio holds until the next.
type dropRatio struct {
	*Fleet
	flush, update time.Duration
	tau           time.Duration   // of the estimate's mean; 0: the mean since the last update alone
	phase         []time.Duration // of the pods' reports
	updatePhase   time.Duration

	offered  []uint64 // since a pod's last report
	drop     []float64
	usage    *mail[uint64]
	decided  *mail[float64]
	counted  uint64 // since the last update
	since    time.Duration
	estimate float64 // requests/s
	said     float64
}

// newSecondly is the cadence that has been published, all of it once a second: pods report when the clock's second ends,
// which may be anywhere in the run, and the controller decides when the reports are there.
func newSecondly(f *Fleet) Design {
	const wait = 100 * time.Millisecond
	second := f.below(time.Second).Truncate(step)
	phase := make([]time.Duration, f.Pods)
	for i := range phase {
		phase[i] = second
	}
	d := newDropRatio(f, time.Second, phase)
	d.update, d.updatePhase = time.Second, second+time.Second-wait
	return d
}

// newQuick is the same at the cadence of weir's reports and decisions.
func newQuick(f *Fleet) Design {
	t := &f.scenario.Timing
	d := newDropRatio(f, t.Flush, f.phases(t.Flush))
	d.update, d.tau = t.Tick, 300*time.Millisecond
	return d
}

func newDropRatio(f *Fleet, flush time.Duration, phase []time.Duration) *dropRatio {
	return &dropRatio{
		Fleet: f, flush: flush, phase: phase,
		offered: make([]uint64, f.Pods), drop: make([]float64, f.Pods),
		usage: newMail[uint64](f, up), decided: newMail[float64](f, down),
	}
}

func (d *dropRatio) Step(now time.Duration) {
	for pod, n := range d.offered {
		if n > 0 && due(now, d.flush, d.phase[pod]) {
			d.usage.report(now, pod, n)
			d.offered[pod] = 0
		}
	}
	for _, l := range d.usage.arrived(now) {
		d.counted += l.body
	}
	if now > 0 && due(now, d.update, d.updatePhase) && !d.gone(now) {
		d.decide(now)
	}
	for _, l := range d.decided.arrived(now) {
		d.drop[l.pod] = l.body
	}
}

// decide spreads what came in since the last update, however long ago that was, over that time.
func (d *dropRatio) decide(now time.Duration) {
	dt := now - d.since
	weight := 1.0
	if d.tau > 0 {
		weight = 1 - math.Exp(-dt.Seconds()/d.tau.Seconds())
	}
	d.estimate += weight * (float64(d.counted)/dt.Seconds() - d.estimate)
	d.counted, d.since = 0, now
	drop := 0.0
	if limit := d.Limit / d.Window.Seconds(); d.estimate > limit {
		drop = 1 - limit/d.estimate
	}
	if drop != d.said {
		d.said = drop
		d.decided.broadcast(now, drop)
	}
}

func (d *dropRatio) Allow(_ time.Duration, pod int) bool {
	d.offered[pod]++
	return d.random.Float64() >= d.drop[pod]
}
