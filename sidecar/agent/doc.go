// Package agent is the sidecar's control side: one goroutine owns all control state (counters, reports,
// what is heard, policies) and everything comes to it as an event: a tick of the flush timer, a charge,
// an acknowledgement, a batch, a policy, a question from /debug. It never waits for I/O: readers of
// Kafka hand over and wait themselves, sends go to a writer that refuses rather than waits, files are
// written beside it.
//
// Checks run elsewhere and share with it only atomic words, and for the moment in which a new counter
// gets its slot a short lock (prepare.go).
package agent
