// Package report is what a pod says of its usage: which counters are dirty, what goes into the next
// report of each partition, what an acknowledgement or its failure means, and which reports a
// watermark includes. Counts are cumulative, so that nothing that happens to a report changes a total.
//
// Nothing here has a goroutine, a clock or I/O. The Builder belongs to the control goroutine.
package report
