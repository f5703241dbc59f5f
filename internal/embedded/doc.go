// Package embedded holds a Kafka broker and a Redis server inside this process, on real sockets of the
// loopback interface: for the demo and for tests. They speak the real protocols, so that everything
// above runs the code that it runs in production; they keep nothing, and are no measure of speed.
package embedded
