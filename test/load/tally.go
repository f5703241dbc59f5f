package load

import (
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Tally is the account of some requests: those of one source on one pod, or
// the sum of several such. Times are in milliseconds since the start of the run.
type Tally struct {
	// Sent requests are those handed to a target. Each is Admitted, Denied,
	// one of Other, or one of Errors, once it has been answered.
	Sent int
	// Admitted were answered with a 2xx, Denied with 429.
	Admitted, Denied int
	// Other counts answers with any other status.
	Other map[int]int
	// Errors are requests without an answer: refused or broken connections,
	// time-outs, errors of the gRPC call. LastError is one of them.
	Errors    int
	LastError error
	// Unsent were due, but too many were under way.
	Unsent int

	// SentAt and AnsweredAt say when each admitted request went out and when
	// its answer came, entry by entry. The decision lies between the two.
	SentAt, AnsweredAt []int64
	// Latency is of all answers, whatever they were.
	Latency Latency
}

// Requests returns how many requests were due.
func (t *Tally) Requests() int { return t.Sent + t.Unsent }

// MaxWindow returns how many admitted requests the fullest window of width w
// holds: by the time they were sent or answered, whichever makes fewer, since
// a stall of this machine crowds the one or the other but no pod's decisions.
func (t *Tally) MaxWindow(w time.Duration) int {
	return min(MaxWindow(t.SentAt, w.Milliseconds()), MaxWindow(t.AnsweredAt, w.Milliseconds()))
}

// AdmittedBetween returns how many requests that were sent in [from, to) since
// the start of the run were admitted.
func (t *Tally) AdmittedBetween(from, to time.Duration) int {
	return CountBetween(t.SentAt, from.Milliseconds(), to.Milliseconds())
}

// answered enters one answer.
func (t *Tally) answered(status int, sent, now time.Duration) {
	t.Latency.add(now - sent)
	switch {
	case status >= 200 && status < 300:
		t.Admitted++
		t.SentAt = append(t.SentAt, sent.Milliseconds())
		t.AnsweredAt = append(t.AnsweredAt, now.Milliseconds())
	case status == http.StatusTooManyRequests:
		t.Denied++
	default:
		if t.Other == nil {
			t.Other = map[int]int{}
		}
		t.Other[status]++
	}
}

// add enters what another tally holds.
func (t *Tally) add(o *Tally) {
	t.Sent += o.Sent
	t.Admitted += o.Admitted
	t.Denied += o.Denied
	t.Errors += o.Errors
	t.Unsent += o.Unsent
	if o.LastError != nil {
		t.LastError = o.LastError
	}
	for status, n := range o.Other {
		if t.Other == nil {
			t.Other = map[int]int{}
		}
		t.Other[status] += n
	}
	t.SentAt = append(t.SentAt, o.SentAt...)
	t.AnsweredAt = append(t.AnsweredAt, o.AnsweredAt...)
	t.Latency.merge(&o.Latency)
}

// key names a tally of the run.
type key struct{ source, pod string }

// cell is a tally that workers write. Its method is safe for concurrent use.
type cell struct {
	mu    sync.Mutex
	tally Tally
}

func (c *cell) update(f func(*Tally)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f(&c.tally)
}

// Result is the account of a run, up to some moment.
type Result struct{ tallies map[key]*Tally }

// At returns the tally of one source on one pod.
func (r Result) At(source, pod string) *Tally {
	return r.sum(func(k key) bool { return k == key{source, pod} })
}

// Of returns the tally of one source on all pods.
func (r Result) Of(source string) *Tally {
	return r.sum(func(k key) bool { return k.source == source })
}

// On returns the tally of all sources on one pod.
func (r Result) On(pod string) *Tally {
	return r.sum(func(k key) bool { return k.pod == pod })
}

// Total returns the tally of everything.
func (r Result) Total() *Tally { return r.sum(func(key) bool { return true }) }

// Sources returns the names of all sources, in order.
func (r Result) Sources() []string {
	names := map[string]bool{}
	for k := range r.tallies {
		names[k.source] = true
	}
	return slices.Sorted(maps.Keys(names))
}

func (r Result) sum(which func(key) bool) *Tally {
	sum := &Tally{}
	for k, t := range r.tallies {
		if which(k) {
			sum.add(t)
		}
	}
	return sum
}
