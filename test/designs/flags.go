package designs

import "time"

// subBuckets of the aggregator's window, the oldest counted whole: as many as weir's.
const subBuckets = 60

// flags: each pod holds one bit for the key. Pods report what they admitted every flush; the aggregator sums the window and says
// blocked or unblocked when that changes, at a tick. A flag holds until the next: it does not expire.
type flags struct {
	*Fleet
	phase    []time.Duration
	admitted []uint64 // since a pod's last report
	blocked  []bool   // as each pod knows it
	usage    *mail[usage]
	decided  *mail[bool]
	backlog  []letter[usage]
	window   *window
	said     bool
}

// usage is what a pod admitted until at.
type usage struct {
	at    time.Duration
	units uint64
}

func newFlags(f *Fleet) Design {
	return &flags{
		Fleet: f, phase: f.phases(f.scenario.Timing.Flush),
		admitted: make([]uint64, f.Pods), blocked: make([]bool, f.Pods),
		usage: newMail[usage](f, up), decided: newMail[bool](f, down),
		window: newWindow(max(f.Window/subBuckets, step), subBuckets+1),
	}
}

func (d *flags) Step(now time.Duration) {
	d.report(now)
	d.backlog = append(d.backlog, d.usage.arrived(now)...)
	if !d.gone(now) {
		d.aggregate(now)
	}
	for _, l := range d.decided.arrived(now) {
		d.blocked[l.pod] = l.body
	}
}

func (d *flags) report(now time.Duration) {
	for pod, n := range d.admitted {
		if n > 0 && due(now, d.scenario.Timing.Flush, d.phase[pod]) {
			d.usage.report(now, pod, usage{now, n})
			d.admitted[pod] = 0
		}
	}
}

func (d *flags) aggregate(now time.Duration) {
	d.window.advance(now)
	for _, l := range d.backlog {
		d.window.add(l.body.at, l.body.units)
	}
	d.backlog = d.backlog[:0]
	if full := float64(d.window.content) >= d.Limit; full != d.said && due(now, d.scenario.Timing.Tick, 0) {
		d.said = full
		d.decided.broadcast(now, full)
	}
}

func (d *flags) Allow(_ time.Duration, pod int) bool {
	if d.blocked[pod] {
		return false
	}
	d.admitted[pod]++
	return true
}
