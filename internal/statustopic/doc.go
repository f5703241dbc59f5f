// Package statustopic is what every reader of weir.status shares: what a record must be, and how old it
// is. Pure; times are a monotonic clock's.
package statustopic
