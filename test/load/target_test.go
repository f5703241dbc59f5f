package load_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/weirproxy/weir/test/load"
)

func soon(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// httpServer serves handler and counts connections.
func httpServer(t *testing.T, handler http.HandlerFunc) (addr string, connections *atomic.Int64) {
	t.Helper()
	connections = &atomic.Int64{}
	server := httptest.NewUnstartedServer(handler)
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://"), connections
}

func do(t *testing.T, target load.Target, r *load.Request) load.Answer {
	t.Helper()
	answer, err := target.Do(soon(t), r)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

func closing(t *testing.T, target load.Target) load.Target {
	t.Helper()
	t.Cleanup(func() {
		if err := target.Close(); err != nil {
			t.Error(err)
		}
	})
	return target
}

func TestHTTPSendsTheRequestAsGiven(t *testing.T) {
	addr, _ := httpServer(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method != "POST" || r.RequestURI != "/a%2f../b?q=1" || r.Host != "shop.test" || r.Header.Get("x-api-key") != "acme" {
			t.Errorf("got %s %s of %s, %v", r.Method, r.RequestURI, r.Host, r.Header)
		}
		w.Header().Set("retry-after", "3")
		w.WriteHeader(429)
		_, _ = w.Write([]byte(strings.Repeat("x", 100_000))) // chunked
	})
	target := closing(t, load.HTTP(addr, 1))
	for range 3 {
		answer := do(t, target, &load.Request{
			Method: "POST", Path: "/a%2f../b?q=1", Host: "shop.test",
			Header: map[string]string{"x-api-key": "acme"},
		})
		if answer.Status != 429 || answer.Header.Get("retry-after") != "3" {
			t.Errorf("answer %+v", answer)
		}
	}
}

func TestHTTPKeepsItsConnectionsAndMakesNoMore(t *testing.T) {
	addr, connections := httpServer(t, func(w http.ResponseWriter, r *http.Request) {})
	target := closing(t, load.HTTP(addr, 3))
	var callers sync.WaitGroup
	for range 20 {
		callers.Go(func() {
			for range 20 {
				if answer, err := target.Do(soon(t), &load.Request{}); err != nil || answer.Status != 200 {
					t.Errorf("%v, %v", answer, err)
				}
			}
		})
	}
	callers.Wait()
	if n := connections.Load(); n > 3 {
		t.Errorf("%d connections", n)
	}
}

func TestHTTPConnectionThatBreaksCostsOneRequest(t *testing.T) {
	var calls atomic.Int64
	addr, connections := httpServer(t, func(w http.ResponseWriter, r *http.Request) {
		if calls.Add(1) == 2 {
			panic(http.ErrAbortHandler)
		}
	})
	target := closing(t, load.HTTP(addr, 1))
	do(t, target, &load.Request{})
	if _, err := target.Do(soon(t), &load.Request{}); err == nil {
		t.Error("an aborted request was answered")
	}
	do(t, target, &load.Request{Method: "HEAD"})
	do(t, target, &load.Request{})
	if calls.Load() != 4 || connections.Load() != 2 {
		t.Errorf("%d requests over %d connections", calls.Load(), connections.Load())
	}
}

func TestHTTPRequestEndsWithItsContext(t *testing.T) {
	release := make(chan struct{})
	addr, _ := httpServer(t, func(http.ResponseWriter, *http.Request) { <-release })
	defer close(release)
	target := closing(t, load.HTTP(addr, 1))
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	if _, err := target.Do(ctx, &load.Request{}); err == nil {
		t.Error("no error after the deadline")
	}
}

// checker answers by the path, and keeps the last request.
type checker struct {
	authv3.UnimplementedAuthorizationServer
	last atomic.Pointer[authv3.CheckRequest]
}

func (c *checker) Check(_ context.Context, r *authv3.CheckRequest) (*authv3.CheckResponse, error) {
	c.last.Store(r)
	switch r.GetAttributes().GetRequest().GetHttp().GetPath() {
	case "/error":
		return nil, grpcstatus.Error(codes.Unavailable, "no policies yet")
	case "/plain":
		return &authv3.CheckResponse{Status: &status.Status{Code: int32(codes.PermissionDenied)}}, nil
	case "/refused":
		return refusal(), nil
	}
	return &authv3.CheckResponse{Status: &status.Status{}}, nil
}

func refusal() *authv3.CheckResponse {
	return &authv3.CheckResponse{
		Status: &status.Status{Code: int32(codes.ResourceExhausted)},
		HttpResponse: &authv3.CheckResponse_DeniedResponse{DeniedResponse: &authv3.DeniedHttpResponse{
			Status: &typev3.HttpStatus{Code: typev3.StatusCode_TooManyRequests},
			Headers: []*corev3.HeaderValueOption{
				{Header: &corev3.HeaderValue{Key: "retry-after", Value: "3"}},
				{Header: &corev3.HeaderValue{Key: "ratelimit", RawValue: []byte(`"x";r=0`)}},
			},
		}},
	}
}

func grpcServer(t *testing.T) (*checker, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	check := &checker{}
	server := grpc.NewServer()
	authv3.RegisterAuthorizationServer(server, check)
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(listener)
	}()
	t.Cleanup(func() { server.Stop(); <-served })
	return check, "unix://" + path
}

func TestGRPCAsksAsEnvoyDoes(t *testing.T) {
	check, address := grpcServer(t)
	target := closing(t, load.GRPC(address, 2))

	answer := do(t, target, &load.Request{
		Method: "PUT", Path: "/ok?q", Header: map[string]string{"x-api-key": "acme"},
		Peer: "10.1.2.3", Principal: "spiffe://x/y", Extensions: map[string]string{"weir.target": "z"},
	})
	if answer.Status != 200 {
		t.Errorf("status %d", answer.Status)
	}
	attributes := check.last.Load().GetAttributes()
	request := attributes.GetRequest().GetHttp()
	if request.GetMethod() != "PUT" || request.GetPath() != "/ok?q" || request.GetHeaders()["x-api-key"] != "acme" || request.GetHeaders()[":path"] != "/ok?q" {
		t.Errorf("request %v", request)
	}
	source := attributes.GetSource()
	if source.GetAddress().GetSocketAddress().GetAddress() != "10.1.2.3" || source.GetPrincipal() != "spiffe://x/y" || attributes.GetContextExtensions()["weir.target"] != "z" {
		t.Errorf("attributes %v", attributes)
	}

	refused := do(t, target, &load.Request{Path: "/refused"})
	if refused.Status != 429 || refused.Header.Get("retry-after") != "3" || refused.Header.Get("ratelimit") != `"x";r=0` {
		t.Errorf("refusal %+v", refused)
	}
	if plain := do(t, target, &load.Request{Path: "/plain"}); plain.Status != 403 {
		t.Errorf("refusal without a status: %+v", plain)
	}
	if _, err := target.Do(soon(t), &load.Request{Path: "/error"}); grpcstatus.Code(err) != codes.Unavailable {
		t.Errorf("error of the call: %v", err)
	}
}

func TestGRPCWithABadAddressFailsEachRequest(t *testing.T) {
	target := closing(t, load.GRPC("no\x7fscheme://", 1))
	if _, err := target.Do(soon(t), &load.Request{}); err == nil {
		t.Error("answered")
	}
}
