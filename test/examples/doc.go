// Package examples holds what examples/ promises: each service runs as its README says, behind a real Envoy and with
// weir's own programs, and its client sees the service's answer and the quota's refusal; and the manifests beside it
// are what weir inject and weir validate take. A service whose runtime is not on the PATH is skipped, by name.
package examples
