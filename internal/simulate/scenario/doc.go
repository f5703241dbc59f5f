// Package scenario reads the files that `weir simulate` runs: pods, a quota, traffic, the network, faults, and what a
// reference measured. It knows the format alone; internal/simulate runs it.
//
// Files are read strictly, with everything wrong told at once: place, field, reason, remedy (policy.Errors). A quota in
// them is decoded into api/v1alpha1's types and held to internal/policy's own rules. What Parse returned, Marshal writes
// as a file that reads equal.
package scenario
