// Package kube is QuotaPolicy as a Kubernetes resource: the spec of package v1alpha1 with an object's
// metadata and a status. It is apart from v1alpha1 so that the sidecar and the aggregator, which read
// the same specs, link no Kubernetes library. controller-gen makes the CustomResourceDefinition of
// charts/weir-crds and the deep copies from these types: `make crds`.
//
// +kubebuilder:object:generate=true
// +groupName=weirproxy.dev
// +versionName=v1alpha1
package kube
