// Package extauthz is the check server: Envoy's envoy.service.auth.v3.Authorization by grpc-go, and
// grpc.health.v1.Health beside it. It turns a CheckRequest into a match.Request, asks the Checker, and
// turns the answer into a CheckResponse. All that is decided is decided elsewhere, so that another
// server (issue 5) can take this one's place.
//
// A gRPC caller that is refused gets RESOURCE_EXHAUSTED: Envoy would make UNAVAILABLE of a 429, which
// clients retry at once, so the answer sets grpc-status itself, and the body, which becomes
// grpc-message, is a sentence.
package extauthz
