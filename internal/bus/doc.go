// Package bus is the one place that sets Sarama up. It offers what weir needs of Kafka and no more:
//
//   - Dial: a Client from a Config (TLS, SASL, time-outs), tried until its context ends. The Client
//     answers questions (topic ids, partitions, offsets by time) and administers: Ensure and Check
//     for the four topics, EnsureACLs.
//   - Reader: partitions without a group, from an offset, an age or the oldest, made anew after any
//     error (an offset out of range and a topic made anew included), told once when caught up.
//   - Writer: bounded, never waiting sends with one unacknowledged record a lane, each answered once.
//   - Group: which partitions are this process's own (static membership, cooperative-sticky); it
//     reads nothing.
//
// Nothing above this package imports Sarama.
//
// Sarama's own client, consumer and producers are not used, only its connections and messages
// (sarama.Broker): they hold locks over network waits, cannot be interrupted, retry behind one's back
// and buffer without bound. Here every wait at a broker has a connection of its own (Kafka answers
// the requests of one connection in order, so a waiting fetch would hold up an acknowledgement), which
// the end of a context breaks at once; and every failure is told of, never retried in silence.
//
// So a process holds one connection for each partition that it reads and for each one that it has
// written within the last minute, and one to its group's coordinator; questions take a short one each.
package bus
