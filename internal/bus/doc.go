// Package bus is the one place that sets Sarama up. It offers what weir needs of Kafka and no more:
//
//   - Dial: a client from a Config (TLS, SASL, time-outs), retried until its context ends.
//   - Admin: Ensure and Check the four topics and ACLs, topic ids, offsets by time.
//   - Reader: partitions without a group, from an offset, an age or the oldest, made anew after any
//     error (an offset out of range included), with the end of each partition known.
//   - Writer: bounded, never waiting sends with one unacknowledged record a lane.
//   - Group: which partitions are this process's own (static membership, sticky); it reads nothing.
//
// Nothing above this package imports Sarama.
package bus
