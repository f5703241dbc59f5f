// Package mesh holds what weir render prints for Istio and Envoy Gateway against what these publish. It is a module of its
// own, so that nothing of theirs can move a version of what weir itself links. Run it with go test in this folder.
package mesh
