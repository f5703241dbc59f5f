// Package store keeps what the aggregator must not lose: each counter's windowed total and each
// partition's place in the usage log. It is the only package that knows Redis.
//
// One usage partition is one hash-tagged key space, {weir:<partition>}:…, so that a flush touches
// one slot. A counter is a hash of absolute values; a partition has one record. Every write passes
// the same fence: an older owner epoch of the same log id, and a chunk of an older flush, change
// nothing. Redis (this package's Redis) and Memory obey the same contract, which one suite tests.
//
// What may be touched here: the script and Memory change together or not at all; field names are a
// format that running installations hold.
package store
