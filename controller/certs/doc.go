// Package certs keeps the certificate that the injection webhook serves, and tells kube-apiserver whom to
// trust for it.
//
//	authority.go      an authority and its certificates: pure, time is an argument
//	secret.go         mode SelfManaged: both in one Secret, made by whichever replica comes first, read by all
//	files.go          mode Files: a mounted Secret of cert-manager's or of one's own
//	bundle.go         caBundle of the MutatingWebhookConfiguration, kept as the Secret says (SelfManaged alone)
//	certificates.go   the part that runs, serves the newest and says what is wrong
//
// Nothing here waits for a lease: every replica may write, since each write is of what the Secret holds, and
// whoever read an older Secret is refused by its resource version.
package certs
