// Package crd holds the CustomResourceDefinition of QuotaPolicy against the Go validation of the same
// documents: a table of documents that both accept, both refuse, or only Go refuses, and the parts of
// kube-apiserver that validate a resource, run in process. Package server puts the same table to a real
// kube-apiserver.
package crd
