package demo

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
)

// tenth lets one request in ten pass.
type tenth struct {
	authv3.UnimplementedAuthorizationServer
	asked atomic.Int64
}

func (s *tenth) Check(context.Context, *authv3.CheckRequest) (*authv3.CheckResponse, error) {
	if s.asked.Add(1)%10 == 1 {
		return &authv3.CheckResponse{Status: &status.Status{Code: int32(codes.OK)}}, nil
	}
	return &authv3.CheckResponse{
		Status: &status.Status{Code: int32(codes.PermissionDenied)},
		HttpResponse: &authv3.CheckResponse_DeniedResponse{DeniedResponse: &authv3.DeniedHttpResponse{
			Status: &typev3.HttpStatus{Code: typev3.StatusCode_TooManyRequests},
		}},
	}, nil
}

func serveChecks(t *testing.T, path string) *tenth {
	t.Helper()
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	checks, server := &tenth{}, grpc.NewServer()
	authv3.RegisterAuthorizationServer(server, checks)
	go func() { _ = server.Serve(l) }()
	t.Cleanup(server.Stop)
	return checks
}

func realEnvoy(t *testing.T) string {
	t.Helper()
	t.Chdir(filepath.Join("..", "..")) // where .tools is
	binary, err := findEnvoy("")
	if err != nil || binary == "" {
		t.Skipf("no Envoy here: make envoy installs one (%v)", err)
	}
	return binary
}

func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "d")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func TestEnvoyAsksTheSidecarAndLeavesNothing(t *testing.T) {
	binary, dir := realEnvoy(t), shortDir(t)
	p := &pod{dir: dir}
	checks := serveChecks(t, p.checkPath())
	up, err := newUpstream()
	if err != nil {
		t.Fatal(err)
	}
	s := newStack()
	s.start("upstream", up.run)
	e := &envoy{binary: binary, dir: dir, socket: p.checkPath(), port: up.addr().Port}
	addr := make(chan string, 1)
	s.start("Envoy", func(ctx context.Context) error { return e.run(ctx, func(a string) { addr <- a }) })
	defer func() {
		if err := s.stop(10 * time.Second); err != nil {
			t.Error(err)
		}
	}()
	var at string
	select {
	case at = <-addr:
	case err := <-s.failed:
		t.Fatal(err)
	}
	client := newHTTPClient(4)
	defer client.CloseIdleConnections()
	a := &viaEnvoy{client, new(atomic.Int64), "http://" + at, request{"GET", "/", nil}}
	admitted := 0
	for range 20 {
		ok, err := a.ask(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if ok {
			admitted++
		}
	}
	if admitted != 2 || checks.asked.Load() != 20 {
		t.Errorf("%d of %d admitted, want 2 of 20", admitted, checks.asked.Load())
	}
}

func TestAnEnvoyThatWillNotStartSaysWhy(t *testing.T) {
	binary, dir := realEnvoy(t), shortDir(t)
	e := &envoy{binary: binary, dir: dir, socket: "", port: 1} // an empty pipe path is invalid
	err := e.run(t.Context(), func(string) { t.Error("ready") })
	if err == nil || len(err.Error()) < 40 {
		t.Errorf("run = %v, want Envoy's own words", err)
	}
}

func TestWithoutAnEnvoyThereIsNoError(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("PATH", "")
	if got, err := findEnvoy(""); got != "" || err != nil {
		t.Errorf("findEnvoy = %q, %v", got, err)
	}
	if _, err := findEnvoy("no-such-envoy"); err == nil {
		t.Error("an Envoy that was named and is not there is no error")
	}
}
