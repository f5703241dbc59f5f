// Package system tests weir as its users run it: its own programs as processes, real Envoys in
// front of them, a real Kafka broker and a real Redis between them, and clients that keep their own
// tally. `make test-system` runs it; `make parts` installs the servers.
//
// Tests assert tallies, order and robust bounds, never a duration. Tight figures are the business
// of test/measure and docs/measurements.md.
package system
