// Package inject puts weir-sidecar into pods: one engine for the webhook and for weir inject and weir
// uninject.
//
// It is pure: a pod or a pod template, as decoded JSON, and settings go in; the changed template and what
// was done come out. It asks no API server, reads no file and no clock. Templates are changed in place as
// trees, not through Kubernetes' Go types, so that fields which this build does not know survive.
//
// What the injector sets is the injector's: the container weir-sidecar, the volumes weir-… and the mounts
// of these are written anew each time, whatever the pod says. All else of a pod is left where it is, in
// its order, so that a second injection changes nothing and another injector's containers do not move.
//
// An Engine is immutable and safe for concurrent use, on different templates.
package inject
