// Package wirev1 is the wire contract of weir's four Kafka topics, version 1: the protobuf
// messages (weir.proto), the identity of counters, the placement of targets on partitions and
// the hashing of secrets. docs/design/wire.md explains it; golden files hold its bytes.
//
// What may be touched here: add fields under new numbers, add dimension kinds at the end.
// Nothing may change its number, its meaning or its encoding, since pods outlive releases.
package wirev1
