// Package secrets copies the Secrets that sidecars need, the identity key and the Kafka client's, from the
// controller's own namespace into those where sidecars are injected, and takes them away again.
//
// A namespace has them while its label asks for injection, or, where it has no such label, while a pod in it asks
// by its own. A namespace labelled disabled has none. A copy carries the label weirproxy.dev/copy-of; a Secret of
// the same name without it is somebody's, is never touched, and is told of by an event. What is read and written
// are Secrets of these names alone, so the controller's rights are bounded by name: copies of a Secret that is
// configured no more are out of its reach, and stay.
package secrets
