// Package scenario reads the files that `weir simulate` runs: pods, a quota, traffic, the network, faults, and what a
// reference measured. It knows the format alone; internal/simulate runs it.
package scenario
