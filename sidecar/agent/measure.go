package agent

import (
	"time"

	"github.com/weirproxy/weir/internal/quota"
	"github.com/weirproxy/weir/sidecar/report"
)

// included measures how long a report took until the decisions in force included it.
func (a *Agent) included(t report.Times) {
	now, to := a.now(), &a.metrics.Propagation
	to.Report.Observe(time.Duration(now - t.HandedOver).Seconds())
	if t.Oldest != 0 {
		to.Oldest.Observe(time.Duration(now - t.Oldest).Seconds())
		to.Newest.Observe(time.Duration(now - t.Newest).Seconds())
	}
}

// observe sets what metrics say of decisions.
func (a *Agent) observe(now quota.Time) {
	for _, h := range a.hearings {
		age, largest := -1.0, -1.0
		if d, ok := h.fresh.Age(now); ok {
			age = max(d.Seconds(), 0)
		}
		if d, ok := h.largestAge(now); ok {
			largest = d.Seconds()
		}
		a.metrics.DecisionAge(h.partition, age, largest)
	}
}

// noteAge takes in the age of the newest header: now, and before another one takes its place, when it is
// as old as it comes to be.
func (h *hearing) noteAge(now quota.Time) {
	if age, ok := h.fresh.Age(now); ok {
		h.ages.Observe(-int64(max(age, 0)), now)
	}
}

// largestAge is the largest age of the last 60 s; false if there was no header.
func (h *hearing) largestAge(now quota.Time) (time.Duration, bool) {
	h.noteAge(now)
	least, ok := h.ages.Value()
	return time.Duration(-least), ok
}
