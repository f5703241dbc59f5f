// Package feed is what a pod hears from the owners of its partitions. Partition turns one decisions
// partition's batches into values to apply: it checks them, keeps their order, and places them in the
// pod's own time. Known remembers the records of hot and blocked counters, seen here or not, for
// slots yet to be made.
//
// Nothing here has a goroutine, a clock or I/O: what is heard is an argument, and so is its time.
package feed
