package demo

import (
	"slices"
	"sync"
	"time"
)

// event is one answered request.
type event struct {
	at       time.Duration // since the load began, when the answer came
	pod      int
	admitted bool
}

// tally is the load's own record of what came of each request. Safe for concurrent use.
type tally struct {
	mu      sync.Mutex
	events  []event
	total   counts // of all that was answered
	offered int
	failed  int
	lastErr error
}

// maxEvents bounds the tally's memory; beyond it the older half is dropped, and figures about windows are of the
// newer one.
const maxEvents = 1 << 21

func (t *tally) offer() {
	t.mu.Lock()
	t.offered++
	t.mu.Unlock()
}

func (t *tally) answer(e event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.events) >= maxEvents {
		t.events = append(t.events[:0], t.events[maxEvents/2:]...)
	}
	t.events = append(t.events, e)
	t.total.add(e)
}

// fail notes a request that got no answer: it was not offered after all, as far as the quota is
// concerned.
func (t *tally) fail(err error) {
	t.mu.Lock()
	t.offered--
	t.failed++
	t.lastErr = err
	t.mu.Unlock()
}

// snapshot is a copy in order of time, and the counts of all that was ever answered.
func (t *tally) snapshot() ([]event, counts) {
	t.mu.Lock()
	events, total := slices.Clone(t.events), t.total
	t.mu.Unlock()
	slices.SortStableFunc(events, func(a, b event) int { return int(a.at - b.at) })
	return events, total
}

// failures are the requests without an answer, and the newest reason.
func (t *tally) failures() (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.failed, t.lastErr
}

// counts are a pod's requests within a span of time.
type counts struct{ offered, admitted, refused int }

// since counts each pod's events after from, and all of them together.
func (t *tally) since(from time.Duration, pods int) (each []counts, all counts) {
	each = make([]counts, pods)
	t.mu.Lock()
	defer t.mu.Unlock()
	// Answers come nearly in order: a second beyond the bound is far enough to look back.
	for i := len(t.events) - 1; i >= 0 && t.events[i].at > from-time.Second; i-- {
		if e := t.events[i]; e.at > from {
			each[e.pod].add(e)
			all.add(e)
		}
	}
	return each, all
}

func (c *counts) add(e event) {
	c.offered++
	if e.admitted {
		c.admitted++
	} else {
		c.refused++
	}
}

// worstWindow is the most that was admitted in any span of the window's length: over (t-window, t].
func worstWindow(events []event, window time.Duration) int {
	worst, first, n := 0, 0, 0
	for i, e := range events {
		if !e.admitted {
			continue
		}
		n++
		for events[first].at <= events[i].at-window {
			if events[first].admitted {
				n--
			}
			first++
		}
		worst = max(worst, n)
	}
	return worst
}

// filledAt is when the window first held limit admissions; false if it never did.
func filledAt(events []event, limit int, window time.Duration) (time.Duration, bool) {
	var times []time.Duration
	for _, e := range events {
		if !e.admitted {
			continue
		}
		times = append(times, e.at)
		if n := len(times); n >= limit && times[n-limit] > e.at-window {
			return e.at, true
		}
	}
	return 0, false
}

// enforced is how long after the global window was first full the last of the pods refused for the
// first time, 0 for one that refused already; false where the window never filled or a pod never refused.
func enforced(events []event, limit int, window time.Duration, pods int) (time.Duration, bool) {
	full, ok := filledAt(events, limit, window)
	if !ok {
		return 0, false
	}
	first := make(map[int]time.Duration, pods)
	for _, e := range events {
		if _, seen := first[e.pod]; !seen && !e.admitted {
			first[e.pod] = e.at
		}
	}
	var last time.Duration
	for _, at := range first {
		last = max(last, at-full)
	}
	return last, len(first) == pods
}

// percentile is the value that the part p (0..1) of values does not exceed; 0 of none.
func percentile(values []time.Duration, p float64) time.Duration {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Clone(values)
	slices.Sort(sorted)
	return sorted[min(len(sorted)-1, int(p*float64(len(sorted))))]
}
