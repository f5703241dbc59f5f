// Package istio runs a real istiod on a cluster of package cluster, and real Envoys that take their whole
// configuration from it, for tests of what weir render prints for Istio.
//
// What differs from a mesh on machines of its own: the Envoy is the one that all tests run, not Istio's
// build, so istiod is told to leave out the filters that only the latter has; nothing redirects traffic, so
// a Sidecar resource (Sidecar) names the ports; and there are no certificates, so mutual TLS is off.
package istio
