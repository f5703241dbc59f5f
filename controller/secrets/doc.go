// Package secrets copies the Secrets that sidecars need, the identity key and the Kafka client's, from the
// controller's own namespace into those where sidecars are injected, and takes them away again.
//
// A namespace has them while its label asks for injection, or a pod in it does by its own label. A copy
// carries the label weirproxy.dev/copy-of; a Secret of the same name without it is somebody's, is never
// touched, and is told of by an event. What is read and written are Secrets of these names alone, so the
// controller's rights are bounded by name.
package secrets
