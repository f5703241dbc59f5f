// Package v1alpha1 is the QuotaPolicy document, version weirproxy.dev/v1alpha1, as plain Go types:
// the same document is a file (weir apply, weir-aggregator --policies) and, wrapped by package
// kube, a Kubernetes resource. The comments here are what a reader of the reference page and of
// `kubectl explain` sees.
//
// The types hold a document as it was written: defaults are documented, not filled in. Package
// internal/policy parses, validates and compiles them. Nothing of weir is imported here.
//
// +kubebuilder:object:generate=true
package v1alpha1
