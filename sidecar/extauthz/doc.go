// Package extauthz is the check server: Envoy's envoy.service.auth.v3.Authorization, and
// grpc.health.v1.Health beside it. It turns a CheckRequest into a match.Request, asks the Checker, and
// turns the answer into a CheckResponse. All that is decided is decided elsewhere.
//
// There are two servers. The own one (packages unary and wire) reads the request's bytes and answers on
// the connection's goroutine: unary calls of peers in the same pod are its whole scope. The other is
// grpc-go with the generated messages: the way back for a user, and in tests the own one's twin.
//
// A gRPC caller that is refused gets RESOURCE_EXHAUSTED: Envoy would make UNAVAILABLE of a 429, which
// clients retry at once, so the answer sets grpc-status itself, and the body, which becomes
// grpc-message, is a sentence.
package extauthz
