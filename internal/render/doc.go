// Package render writes the configuration that has an Envoy ask the sidecar: a whole plain one, Istio's in two ways, and
// Envoy Gateway's. The filter and the cluster are one typed model for all of them, in Envoy's own types; what a mesh
// or a gateway cannot say of it is refused with what to do instead, never left out in silence.
//
// Each field that somebody might wonder at has its reason beside it, from one table (notes.go). Nothing here does
// I/O. The same options give the same bytes.
package render
