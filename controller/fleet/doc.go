// Package fleet is the controller's mirror of weir.status: what each pod's sidecar says that it enforces, and
// how old that is. It writes nothing; the aggregators tombstone pods that are long silent.
//
// What a pod says counts for as long as it is renewed: after 30 s of silence it is stale. Times are a
// monotonic clock's and the broker's, never a pod's. book and runs are pure; Fleet is the shell around them.
package fleet
