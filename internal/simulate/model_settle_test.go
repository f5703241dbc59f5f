package simulate

import (
	"fmt"
	"math"
	"time"

	"github.com/weirproxy/weir/aggregator/partition"
	"github.com/weirproxy/weir/aggregator/store"
	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/internal/quota"
)

// settle ends all troubles and lets time pass until everything is counted and stored. That it comes to that is a check
// of its own.
func (m *model) settle() error {
	w := m.w
	w.chance = chance{}
	w.store.SetDown(false)
	w.brokerBack()
	for _, p := range w.pods {
		p.cut = false
	}
	for _, o := range w.owners {
		o.slow = 0
	}
	const look = 50 * time.Millisecond
	for end := w.at() + settleWithin; w.at() < end; {
		w.run(w.at() + look)
		if w.err != nil {
			return w.err
		}
		if m.waitsFor() == "" {
			return nil
		}
	}
	return fmt.Errorf("%v after all troubles: %s", settleWithin, m.waitsFor())
}

// waitsFor is what is not yet settled; "": nothing.
func (m *model) waitsFor() string {
	for a := range m.admitted {
		if n := m.unacknowledged(a); n > 0 && !a.run.dead {
			return fmt.Sprintf("pod %s has %d units of %s to report", a.run.name, n, a.id)
		}
	}
	o := m.w.owner()
	if o.dead || o.p == nil || o.stalled || !o.p.Live() {
		return fmt.Sprintf("%s does not decide: dead %v, stalled %v, claimed %v", o.name, o.dead, o.stalled, o.p != nil)
	}
	if end := m.w.log.end(); o.next < end || o.cfg.Owner.LogID != store.LogID(m.w.log.id) {
		return fmt.Sprintf("%s has read the log up to %d of %d", o.name, o.next, end)
	}
	if m.unnoticed {
		return o.name + " has not noticed that the store lost its data"
	}
	g := o.p.Gauges(m.w.now)
	if g.Waiting > 0 || g.Loading > 0 || g.Dirty > 0 || g.Stored < g.Watermark {
		return fmt.Sprintf("%s: %+v", o.name, g)
	}
	return ""
}

// verify holds each counter, and each run of a pod, against the truth.
func (m *model) verify() {
	m.seen.schedules, m.seen.owners, m.seen.logs = 1, len(m.claims), len(m.logs)
	for _, p := range m.runs {
		switch {
		case p.drained != nil:
			m.seen.terminated++
		case p.dead:
			m.seen.killed++
		}
	}
	excess, stored := m.excess(), storedTotals(m.w)
	contents := m.contents()
	for _, id := range m.ids {
		m.counter(id, excess[id], stored[id])
		m.window(id, excess[id], contents)
	}
	for s := range m.series {
		if s.made > 1 && len(m.series[series{s.account, 1}]) > 0 {
			m.seen.remade++
		}
	}
}

// counter: what is stored is what came into the log, and that is what pods admitted, less what ended with a killed one.
func (m *model) counter(id wirev1.ID, excess, stored uint64) {
	var reported uint64
	for _, p := range m.runs {
		a := account{p, id}
		n, admitted := m.reported(a), m.admitted[a]
		reported += n
		m.seen.admitted += admitted
		m.run(a, n, admitted)
	}
	missing := m.missing[id]
	if m.nameless(id) {
		missing = reported
	}
	if stored > reported+excess || stored+missing < reported {
		m.fail("counter %s: stored %d, reported %d (at most %d missing, %d in excess)", id, stored, reported, missing, excess)
	}
	if b, ok := m.belief(id); ok && b.Total != stored {
		m.fail("counter %s: the owner has %d, the store %d", id, b.Total, stored)
	}
	m.seen.counters++
	if missing == 0 && excess == 0 {
		m.seen.exact++
	}
	if stored < reported {
		m.seen.missing++
	}
	if stored > reported {
		m.seen.excess++
	}
}

// run: a pod reports what it admitted. Killed, or at the end of its time to drain, it keeps back no more than what was
// not acknowledged.
func (m *model) run(a account, reported, admitted uint64) {
	lost := admitted - reported
	killed := a.run.dead && (a.run.drained == nil || a.run.gaveUp)
	switch {
	case reported > admitted:
		m.fail("pod %s reported %d units of %s and admitted %d", a.run.name, reported, a.id, admitted)
	case !killed && lost > 0:
		m.fail("pod %s did not report %d of %d units of %s", a.run.name, lost, admitted, a.id)
	case lost > m.unacknowledged(a):
		m.fail("pod %s was killed with %d units of %s unacknowledged, and %d are lost", a.run.name, m.unacknowledged(a), a.id, lost)
	default:
		m.seen.lost += lost
	}
}

// contents are what the newest owner takes the windows of its counters to hold now.
func (m *model) contents() map[string]float64 {
	out := map[string]float64{}
	s := partition.NewSurvey(math.MaxInt32)
	views, _ := m.w.owner().p.Survey(s, m.w.now)
	for _, v := range views {
		for i := range v.Top {
			out[v.Top[i].ID] = v.Top[i].Content
		}
	}
	return out
}

// window: what the owner takes a sliding window to hold is what was admitted in it, but for the oldest sub-bucket, one more
// by which a look between ticks rounds, and what reports cannot say: when in their span, and on their way, their units were
// admitted.
func (m *model) window(id wirev1.ID, excess uint64, contents map[string]float64) {
	length, sliding := m.length(id)
	content, live := contents[id.String()]
	if !sliding || !live {
		return
	}
	from := m.w.now - length
	sub := 2 * length / 60
	late, early := m.spread(id, from-sub)
	if m.stirred > from-sub-late {
		late += m.stirred - (from - sub - late)
		early += late
	}
	most := m.between(id, from-sub-late) + excess
	var lost uint64
	for _, p := range m.runs {
		a := account{p, id}
		lost += m.admitted[a] - m.reported(a)
	}
	least := m.between(id, from+early)
	least -= min(least, lost+m.missing[id])
	if content > float64(most) || content < float64(least) {
		m.fail("counter %s: a window of %v holds %.0f, and %d to %d were admitted in it (late %v, early %v)",
			id, time.Duration(length), content, least, most, time.Duration(late), time.Duration(early))
	}
	if least > 0 {
		m.seen.filled++
	}
}

// length of a counter's window; false for other algorithms.
func (m *model) length(id wirev1.ID) (quota.Time, bool) {
	c := m.w.store.Snapshot(lane)[id]
	identity, err := wirev1.DecodeIdentity(c.Identity)
	if err != nil || identity.Algorithm != wirev1.SlidingWindow {
		return 0, false
	}
	return quota.Time(identity.WindowMillis) * millisecond, true
}
