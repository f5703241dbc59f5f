package extauthz

import (
	"context"
	"fmt"
	"net"
	"time"

	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"

	"github.com/weirproxy/weir/sidecar/check"
	"github.com/weirproxy/weir/sidecar/match"
	"github.com/weirproxy/weir/sidecar/metrics"
)

// Bounds of both servers.
const (
	// maxRequest bounds a check's message, in bytes: headers, and a body where a filter sends one.
	maxRequest = 4 << 20
	// maxStreams bounds the checks under way on one connection, which hold memory before they are counted as in
	// flight; an Envoy opens another connection beyond it.
	maxStreams = 4096
)

// checkMethod is the path of the one method.
const checkMethod = authv3.Authorization_Check_FullMethodName

// Server answers checks. SetServing is safe for concurrent use.
type Server interface {
	// SetServing sets what the gRPC health service says of the server as a whole and of the check service;
	// at first that neither serves.
	SetServing(serving bool)
	// Serve answers checks on l, once, until ctx ends; then it accepts none, lets those under way finish within
	// the drain time, closes l, and returns nil. The error is the listener's.
	Serve(ctx context.Context, l net.Listener) error
}

// Checker decides on requests. It never waits. Its methods are safe for concurrent use, Prepare apart: see
// check.Checker.
type Checker interface {
	Check(*match.Request, *check.Answer)
	CheckBy(*check.Snapshot, *match.Request, *check.Answer)
	Prepare(func(*check.Snapshot))
}

// Kind is one of the servers.
type Kind string

// The servers.
const (
	Own  Kind = "own"  // weir's: unary calls of local, trusted peers
	GRPC Kind = "grpc" // grpc-go
)

// Kinds are all kinds, the default first.
func Kinds() []Kind { return []Kind{Own, GRPC} }

// New returns a server that asks checker and counts in m what is no check. It must be made before the checker's
// first Install. drain bounds how long Serve waits for checks under way once it is to end.
func New(kind Kind, checker Checker, m *metrics.Metrics, drain time.Duration) (Server, error) {
	switch kind {
	case Own:
		return newOwn(checker, m, drain), nil
	case GRPC:
		return newGRPC(checker, m, drain), nil
	default:
		return nil, fmt.Errorf("%q is no check server: there are %q", kind, Kinds())
	}
}

// What is said where nothing was decided. With UNAVAILABLE the filter's own failure mode applies, on every version
// of Envoy.
const (
	sayNotLoaded  = "weir: policies were never loaded; see the sidecar's /readyz"
	sayOverloaded = "weir: too many checks at once"
	sayFailed     = "weir: the check failed inside; see the sidecar's metrics"
	sayNotHTTP    = "weir: the check is not about an HTTP request" // INVALID_ARGUMENT
)

// undecided is what to say of an outcome that is none; "" of one that is an answer.
func undecided(o metrics.Outcome) string {
	switch o {
	case metrics.NotLoaded:
		return sayNotLoaded
	case metrics.Overloaded:
		return sayOverloaded
	case metrics.Failed:
		return sayFailed
	default:
		return ""
	}
}
