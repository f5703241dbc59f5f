// Package simulate runs a fleet in virtual time on weir's own code: sidecar/agent (checks, ledger, reports, what is heard),
// aggregator/partition and the store in memory, with a log, a network and faults between them. There is no model of
// the algorithm here: what is simulated is what ships, without goroutines and sockets. A run depends on its scenario and
// seed alone.
package simulate
