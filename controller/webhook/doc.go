// Package webhook is the controller's mutating webhook: it answers kube-apiserver's admission reviews of
// new pods with a patch that puts weir-sidecar in, by internal/inject.
//
// It never fails a pod for trouble of its own. Where the cluster's state cannot be read, or the pod is one
// that the settings do not fit, the pod is admitted as it is, with a warning to whoever creates it and a count in
// weir_controller_injection_reviews_total. It refuses one thing: an annotation of weir's that its author got
// wrong. It has no side effects, so a dry run is answered as any other review.
//
//	Handler   the HTTP handler; safe for concurrent use, as many reviews at a time as Config says
//	Webhook   the settings file that is followed, the certificates and the server around a Handler
package webhook
