package load

import (
	"context"
	"net/http"
)

// Request is what a source sends. Names of headers are in lower case. A target
// does not change it, so sources and goroutines may share one.
type Request struct {
	Method string // GET if empty
	Path   string // "/" if empty; with the query, as it goes over the wire
	Host   string // "weir.test" if empty
	Header map[string]string

	// What Envoy would know about the caller. Only GRPC sends these: with HTTP
	// the caller is this process.
	Peer       string            // address of the caller, 127.0.0.1 if empty
	Principal  string            // of the peer's certificate
	Extensions map[string]string // context extensions of the route
}

func (r *Request) method() string { return or(r.Method, http.MethodGet) }
func (r *Request) path() string   { return or(r.Path, "/") }
func (r *Request) host() string   { return or(r.Host, "weir.test") }
func (r *Request) peer() string   { return or(r.Peer, "127.0.0.1") }

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

// Answer is what came back. Status is the one that the caller of Envoy sees.
type Answer struct {
	Status int
	Header http.Header
}

// Target takes requests. It is safe for concurrent use.
type Target interface {
	// Do sends one request and waits for its answer, or for ctx's end. It never
	// sends a request twice.
	Do(ctx context.Context, r *Request) (Answer, error)
	Close() error
}
