// Package leases simulates a strict mode that an over-admission of zero could be proven for: an owner
// grants units ahead, pods spend them for the length of a lease, and what was granted counts until it is
// known to have left every window. docs/design/leases.md has the theorem, its proof and the decision.
//
// Pod and Owner are the protocol as state machines: time is an argument, messages are values. Run drives them in
// virtual time, in steps of 1 ms, through delays, losses, repeats, pauses at any instruction, crashes and
// moves of the owner. It is no part of any program.
package leases
