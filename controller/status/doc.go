// Package status says of a policy whether it is valid and where it is in force. It is pure: facts in, a status
// out. Equal facts give an equal status, so that a status that is written leads to no other.
//
// Programmed is True only where every pod of the targets is known to enforce the policy's generation: its sidecar
// runs, has reported within 30 s that the newest version in the topic is in force, and charges the targets in question.
// What is not known is not claimed.
package status
