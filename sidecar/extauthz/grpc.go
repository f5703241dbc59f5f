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
	"github.com/weirproxy/weir/sidecar/extauthz/content"
	"github.com/weirproxy/weir/sidecar/match"
	"github.com/weirproxy/weir/sidecar/metrics"
)

// viaGRPC is the server by grpc-go and the generated messages.
type viaGRPC struct {
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

func newGRPC(checker Checker, m *metrics.Metrics, drain time.Duration) *viaGRPC {
	s := &viaGRPC{
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

// SetServing implements Server.
func (s *viaGRPC) SetServing(serving bool) {
	state := healthv1.HealthCheckResponse_NOT_SERVING
	if serving {
		state = healthv1.HealthCheckResponse_SERVING
	}
	s.health.SetServingStatus("", state)
	s.health.SetServingStatus(authv3.Authorization_ServiceDesc.ServiceName, state)
}

// Serve implements Server.
func (s *viaGRPC) Serve(ctx context.Context, l net.Listener) error {
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
func (s *viaGRPC) Check(_ context.Context, in *authv3.CheckRequest) (res *authv3.CheckResponse, err error) {
	defer func() {
		if recover() != nil { // one request's misfortune is not to end the process
			s.metrics.Check(metrics.Failed)
			res, err = nil, status.Error(codes.Unavailable, sayFailed)
		}
	}()
	c := s.calls.Get().(*call)
	var ok bool
	if c.raw, ok = convert(in, &c.req, c.raw); !ok {
		s.metrics.Check(metrics.Malformed)
		s.calls.Put(c)
		return nil, status.Error(codes.InvalidArgument, sayNotHTTP)
	}
	s.checker.Check(&c.req, &c.answer)
	res, err = s.answer(c)
	clear(c.raw)
	c.req, c.answer = match.Request{}, check.Answer{}
	s.calls.Put(c)
	return res, err
}

func (s *viaGRPC) answer(c *call) (*authv3.CheckResponse, error) {
	if said := undecided(c.answer.Outcome); said != "" {
		return nil, status.Error(codes.Unavailable, said)
	}
	var from content.Caller
	if !c.answer.Allow() {
		from = content.CallerOf(&c.req)
	}
	return s.responder.respond(&c.answer, from), nil
}
