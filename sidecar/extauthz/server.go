package extauthz

import (
	"context"
	"fmt"
	"net"
	"runtime"
	"sync"
	"time"

	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/weirproxy/weir/sidecar/check"
	"github.com/weirproxy/weir/sidecar/match"
	"github.com/weirproxy/weir/sidecar/metrics"
)

// maxRequest bounds a check's message: headers, and a body where a filter sends one.
const maxRequest = 4 << 20

// maxStreams bounds the checks under way on one connection, which hold memory before they are counted as in
// flight; an Envoy opens another connection beyond it.
const maxStreams = 4096

// Checker decides on requests. It never waits.
type Checker interface {
	Check(*match.Request, *check.Answer)
}

// Server is the check server. Its methods are safe for concurrent use.
type Server struct {
	authv3.UnimplementedAuthorizationServer

	checker   Checker
	metrics   *metrics.Metrics
	responder *responder
	calls     sync.Pool
	health    *health.Server
	drain     time.Duration
}

// call is the memory of one check, used again by others.
type call struct {
	req    match.Request
	answer check.Answer
	raw    []match.Header
}

// New returns a server that asks checker and counts what is no check in m. drain bounds how long Serve
// waits for checks under way once it is to end.
func New(checker Checker, m *metrics.Metrics, drain time.Duration) *Server {
	s := &Server{
		checker:   checker,
		metrics:   m,
		responder: newResponder(),
		health:    health.NewServer(),
		drain:     drain,
	}
	s.calls.New = func() any { return new(call) }
	s.SetServing(false)
	return s
}

// SetServing sets what the gRPC health service says of the server as a whole and of the check service.
func (s *Server) SetServing(serving bool) {
	state := healthv1.HealthCheckResponse_NOT_SERVING
	if serving {
		state = healthv1.HealthCheckResponse_SERVING
	}
	s.health.SetServingStatus("", state)
	s.health.SetServingStatus(authv3.Authorization_ServiceDesc.ServiceName, state)
}

// Serve answers checks on l, once, until ctx ends; then it accepts none, lets those under way finish within
// the drain time, and returns.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	server := grpc.NewServer(
		grpc.MaxRecvMsgSize(maxRequest),
		grpc.MaxConcurrentStreams(maxStreams),
		grpc.NumStreamWorkers(uint32(runtime.GOMAXPROCS(0))), //nolint:gosec // a small number
	)
	defer server.Stop()
	authv3.RegisterAuthorizationServer(server, s)
	healthv1.RegisterHealthServer(server, s.health)
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	select {
	case err := <-served:
		return fmt.Errorf("check server: %w", err)
	case <-ctx.Done():
	}
	s.health.Shutdown()
	timer := time.AfterFunc(s.drain, server.Stop)
	defer timer.Stop()
	server.GracefulStop()
	if err := <-served; err != nil {
		return fmt.Errorf("check server: %w", err)
	}
	return nil
}

// Check implements Authorization.
func (s *Server) Check(_ context.Context, in *authv3.CheckRequest) (res *authv3.CheckResponse, err error) {
	defer func() {
		if recover() != nil { // one request's misfortune is not to end the process
			s.metrics.Check(metrics.Failed)
			res, err = nil, errFailed
		}
	}()
	c := s.calls.Get().(*call)
	var ok bool
	if c.raw, ok = convert(in, &c.req, c.raw); !ok {
		s.metrics.Check(metrics.Malformed)
		s.calls.Put(c)
		return nil, errNotHTTP
	}
	s.checker.Check(&c.req, &c.answer)
	res, err = s.answer(c)
	clear(c.raw)
	c.req, c.answer = match.Request{}, check.Answer{}
	s.calls.Put(c)
	return res, err
}

func (s *Server) answer(c *call) (*authv3.CheckResponse, error) {
	switch c.answer.Outcome {
	case metrics.NotLoaded:
		return nil, errNotLoaded
	case metrics.Overloaded:
		return nil, errOverloaded
	case metrics.Failed:
		return nil, errFailed
	}
	from := caller{}
	if !c.answer.Allow() {
		from = callerOf(&c.req)
	}
	return s.responder.respond(&c.answer, from), nil
}

// UNAVAILABLE makes the filter's own failure mode apply, on every version of Envoy.
var (
	errNotLoaded  = status.Error(codes.Unavailable, "weir: policies were never loaded; see the sidecar's /readyz")
	errOverloaded = status.Error(codes.Unavailable, "weir: too many checks at once")
	errFailed     = status.Error(codes.Unavailable, "weir: the check failed inside; see the sidecar's metrics")
	errNotHTTP    = status.Error(codes.InvalidArgument, "weir: the check is not about an HTTP request")
)
