// Package partition is one owned usage partition as a pure state machine: reports, loaded counters,
// policies, live pods and time go in; decision batches, flushes and ids to load come out. There is
// no goroutine, no clock and no I/O here: aggregator/ingest drives it, and so can a simulation.
//
// What it guarantees: each unit that a pod admitted counts once, whatever is lost, repeated,
// reordered or replayed and whoever owned the partition before (DESIGN 3, 4); a counter is not
// decided before its stored state is known; the watermark, owner time and sequence never go back;
// every table is bounded.
package partition
