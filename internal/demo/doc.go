// Package demo is `weir demo`: the whole of weir on one machine, with the code that runs in
// production. A broker and a store are embedded (or one's own are used), one aggregator and several
// sidecars run in this process, each behind a real Envoy of its own where one can be had, and an
// open-loop load of three times the quota falls on them unevenly. The load keeps its own tally, from which
// every figure of the result comes.
//
// Whatever it starts it ends, by its own process ids, within a deadline.
package demo
