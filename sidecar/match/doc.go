// Package match finds the counters of a request: for each target of the pod, each policy in force
// and each limit that applies, one hit a rate with the counter's id and the amount in force.
//
// A Matcher is immutable; a policy change makes a new one. Matching touches no lock, no clock and no
// I/O, and allocates nothing once its Result's buffers have grown. What a policy means is in
// internal/policy; nothing here decides whether a request passes.
package match
