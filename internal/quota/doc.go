// Package quota is weir's control algorithm as pure state machines, in the manner of
// etcd-io/raft: time is an argument, messages are values, randomness is passed in; there is no
// goroutine, no clock and no I/O, and nothing but the standard library is imported.
//
// The pod's side is Decide (the check), Cell (a counter's hot words) and Counter (the same
// counter's control state: flush, acknowledge, apply, renew, fall back). The owner's side is Total
// (ingest, tick, decide, suppress). The sidecar, the aggregator and the simulator drive these; there
// is no second model of the algorithm anywhere.
//
// Units are costs, rates of demand are requests/s. docs/design/quota.md explains the arithmetic.
package quota
