// Package memory fits the sidecar's process into the memory that it was given: it reads the limit of
// the process's control group (v2 or v1), sets the collector's pace and the runtime's memory limit, says how
// many counters there is room for, and lets pages of the program go that its start alone needed.
//
// What the environment sets (GOGC, GOMEMLIMIT, GODEBUG=memprofilerate) is left as it is. The figures behind
// the constants are in docs/design/memory.md.
package memory
