package parts_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/weirproxy/weir/test/parts"
)

// checker refuses what has the header x-refuse, and keeps the last request.
type checker struct {
	authv3.UnimplementedAuthorizationServer
	mu   sync.Mutex
	last *authv3.CheckRequest
}

func (c *checker) Check(_ context.Context, r *authv3.CheckRequest) (*authv3.CheckResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = r
	if _, refuse := r.GetAttributes().GetRequest().GetHttp().GetHeaders()["x-refuse"]; !refuse {
		return &authv3.CheckResponse{Status: &status.Status{}}, nil
	}
	return &authv3.CheckResponse{
		Status: &status.Status{Code: int32(codes.ResourceExhausted)},
		HttpResponse: &authv3.CheckResponse_DeniedResponse{DeniedResponse: &authv3.DeniedHttpResponse{
			Status: &typev3.HttpStatus{Code: typev3.StatusCode_TooManyRequests},
			Headers: []*corev3.HeaderValueOption{{
				Header: &corev3.HeaderValue{Key: "retry-after", Value: "3"},
			}},
			Body: "slow down\n",
		}},
	}, nil
}

func (c *checker) lastRequest() *authv3.CheckRequest {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last
}

// serve runs the checker on network and address, and returns what ends it.
func (c *checker) serve(t *testing.T, network, address string) (addr string, stop func()) {
	t.Helper()
	listener, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	authv3.RegisterAuthorizationServer(server, c)
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(listener)
	}()
	stop = func() { server.Stop(); <-served }
	t.Cleanup(stop)
	return listener.Addr().String(), stop
}

func get(t *testing.T, url string, headers ...string) (*http.Response, string) {
	t.Helper()
	request, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range headers {
		request.Header.Set(name, "1")
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, string(body)
}

func wantStatus(t *testing.T, want int, url string, headers ...string) {
	t.Helper()
	if response, body := get(t, url, headers...); response.StatusCode != want {
		t.Errorf("GET %s %v: %s %q, want %d", url, headers, response.Status, body, want)
	}
}

func TestEnvoyAsksOverUnixSocket(t *testing.T) {
	up := parts.StartUpstream(t)
	socket := parts.SocketPath(t)
	check := &checker{}
	check.serve(t, "unix", socket)
	envoy := parts.StartEnvoy(t, parts.EnvoyOpts{
		Upstream: up.Addr(),
		Authz: &parts.Authz{
			Address:           "unix://" + socket,
			Timeout:           5 * time.Second,
			ContextExtensions: map[string]string{"weir.target": `a "quoted" one`},
		},
	})

	if _, body := get(t, envoy.URL()+"/a/../b//c?q=1"); body != "ok\n" {
		t.Errorf("upstream's body came as %q", body)
	}
	last := check.lastRequest().GetAttributes()
	if got := last.GetContextExtensions()["weir.target"]; got != `a "quoted" one` {
		t.Errorf("context extension is %q", got)
	}
	if got := last.GetRequest().GetHttp().GetPath(); got != "/b/c?q=1" {
		t.Errorf("path is %q", got)
	}
	response, body := get(t, envoy.URL()+"/", "x-refuse")
	if response.StatusCode != 429 || response.Header.Get("retry-after") != "3" || body != "slow down\n" {
		t.Errorf("refusal is %s %v %q", response.Status, response.Header, body)
	}
	if got := up.Count(); got != 1 {
		t.Errorf("upstream saw %d requests, want 1", got)
	}
	stats := envoy.Stats()
	for name, want := range map[string]int64{
		"cluster.upstream.ext_authz.ok":     1,
		"cluster.upstream.ext_authz.denied": 1,
		"http.ingress.downstream_rq_2xx":    1,
		"http.ingress.downstream_rq_4xx":    1,
	} {
		if stats[name] != want {
			t.Errorf("%s is %d, want %d", name, stats[name], want)
		}
	}
}

func TestEnvoyFailsOpenOrClosedAsToldAndHealsAlone(t *testing.T) {
	check := &checker{}
	addr, stop := check.serve(t, "tcp", "127.0.0.1:0")
	stop()
	open := parts.StartEnvoy(t, parts.EnvoyOpts{Authz: &parts.Authz{Address: addr, FailureModeAllow: true}})
	closed := parts.StartEnvoy(t, parts.EnvoyOpts{Authz: &parts.Authz{Address: addr, StatusOnError: 503}})
	wantStatus(t, 200, open.URL())
	wantStatus(t, 503, closed.URL())
	if got := open.Stats()["http.ingress.ext_authz.failure_mode_allowed"]; got != 1 {
		t.Errorf("failure_mode_allowed is %d", got)
	}

	check.serve(t, "tcp", addr)
	parts.Eventually(t, time.Minute, "a check after the checker's return", func() error {
		get(t, closed.URL())
		if check.lastRequest() == nil {
			return io.EOF
		}
		return nil
	})
}

func TestEnvoyAloneRestartsOnItsPorts(t *testing.T) {
	up := parts.StartUpstream(t)
	envoy := parts.StartEnvoy(t, parts.EnvoyOpts{Upstream: up.Addr(), Concurrency: 2})
	wantStatus(t, 200, envoy.URL())
	before := envoy.PID()
	envoy.Restart()
	gone(t, before)
	wantStatus(t, 200, envoy.URL())
	envoy.Stop()
	gone(t, envoy.PID())

	bare := parts.StartEnvoy(t, parts.EnvoyOpts{})
	wantStatus(t, 200, bare.URL())
	if _, body := get(t, "http://"+bare.AdminAddr()+"/server_info"); !strings.Contains(body, "1.40.0") {
		t.Errorf("not the pinned Envoy: %s", body)
	}
}
