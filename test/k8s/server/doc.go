// Package server tests QuotaPolicy on a real kube-apiserver and etcd, with kubectl: make test-k8s builds
// them and names them by KUBEBUILDER_ASSETS. Without that its tests are skipped.
package server
