package designs

import "time"

// Design is a limiter of one key over a fleet, in virtual time. It is used by one goroutine.
type Design interface {
	// Step does what is due at now, before the requests of that millisecond; it is called each 1 ms from 0 on.
	Step(now time.Duration)
	// Allow answers a request at a pod.
	Allow(now time.Duration, pod int) bool
}

// Kind is one design.
type Kind struct {
	Name  string // as a column's head
	Title string // as a sentence's subject
	New   func(*Fleet) Design
}

// Kinds are the designs, the exact one last.
func Kinds() []Kind {
	return []Kind{
		{"block flags", "a blocked/unblocked flag for the key on every pod", newFlags},
		{"drop ratio, 1 s", "a drop ratio from the last second's mean, each second", newSecondly},
		{"drop ratio, quick", "a drop ratio from a mean of 0.3 s, each tick", newQuick},
		{"fixed window", "a central counter for each window of the clock, asked by each request", newFixed},
		{"central exact", "a central sliding window, asked by each request", newExact},
	}
}
