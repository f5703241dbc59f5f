// Package ingest is the shell around aggregator/partition: for each partition that this process holds
// it claims, loads, replays, reads usage, sends decisions and flushes to the store, on one goroutine
// that owns the partition's state. Calls to the store and to Kafka run beside it and come back as values.
package ingest
