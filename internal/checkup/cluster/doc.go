// Package cluster has the checks of Kubernetes: the resource's definition, weir's programs, the injector and its
// certificate, the pods that should have a sidecar, copies of the identity key, the policies' status, and what Istio and
// Envoy Gateway say of weir.
//
// kubernetes collects, each fact once; judge… functions are given objects and read nothing. What this user may not read is
// skipped, with the right that is missing. Of a Secret only a key's fingerprint and a certificate's dates are looked at.
package cluster
