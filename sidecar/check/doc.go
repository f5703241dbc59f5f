// Package check is the decision on one request, apart from the wire it came by: match, find the
// counters' slots, decide, say what to answer. It waits for nothing, logs nothing, and takes no lock
// but the short one by which a new counter gets its slot.
//
// A Checker is driven by a server (sidecar/extauthz today) and fed by the control goroutine through
// Install. Check may be called from any number of goroutines.
package check
