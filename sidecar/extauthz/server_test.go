package extauthz

import (
	"context"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"
	"pgregory.net/rapid"

	"github.com/weirproxy/weir/internal/listen"
	"github.com/weirproxy/weir/internal/policy"
	"github.com/weirproxy/weir/sidecar/check"
	"github.com/weirproxy/weir/sidecar/extauthz/content"
	"github.com/weirproxy/weir/sidecar/match"
	"github.com/weirproxy/weir/sidecar/metrics"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// byPath answers with what the request's path asks for.
type byPath struct{ entered, hold chan struct{} }

func (b *byPath) Prepare(func(*check.Snapshot)) {}

func (b *byPath) CheckBy(_ *check.Snapshot, req *match.Request, a *check.Answer) { b.Check(req, a) }

func (b *byPath) Check(req *match.Request, a *check.Answer) {
	refusal := limited(perSecond, "100/1s", policy.Response{Status: 429}, check.Answer{Outcome: metrics.Refused})
	switch req.Path {
	case "/refused":
		*a = *refusal
	case "/not-loaded":
		*a = check.Answer{Outcome: metrics.NotLoaded}
	case "/overloaded":
		*a = check.Answer{Outcome: metrics.Overloaded}
	case "/failed":
		*a = check.Answer{Outcome: metrics.Failed}
	case "/broken": // a refusal by no limit is none: whoever reads it fails
		*a = check.Answer{Outcome: metrics.Refused}
	case "/panics":
		panic("a mistake")
	case "/held":
		b.entered <- struct{}{}
		<-b.hold
		*a = check.Answer{Outcome: metrics.NoPolicy}
	default:
		*a = check.Answer{Outcome: metrics.NoPolicy}
	}
}

// each runs a test with every kind of server.
func each(t *testing.T, test func(t *testing.T, kind Kind)) {
	for _, kind := range Kinds() {
		t.Run(string(kind), func(t *testing.T) { test(t, kind) })
	}
}

// served runs a server on a unix socket and gives a connection to it.
func served(t testing.TB, kind Kind, c Checker) (conn *grpc.ClientConn, s Server, stop func() error) {
	t.Helper()
	l, err := listen.Listen("unix://"+filepath.Join(t.TempDir(), "check.sock"), 0o660)
	if err != nil {
		t.Fatal(err)
	}
	s, err = New(kind, c, metrics.New(prometheus.NewRegistry(), metrics.Sources{}), 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, l) }()
	conn, err = grpc.NewClient("unix://"+l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	stopped := false
	stop = func() error {
		if stopped {
			return nil
		}
		stopped = true
		cancel()
		return <-ended
	}
	t.Cleanup(func() { _ = conn.Close(); _ = stop() })
	return conn, s, stop
}

func checkOf(path string) *authv3.CheckRequest {
	return &authv3.CheckRequest{Attributes: &authv3.AttributeContext{Request: &authv3.AttributeContext_Request{
		Http: &authv3.AttributeContext_HttpRequest{Method: "GET", Path: path},
	}}}
}

// Cases 20, 23: over a real unix socket, an answer is an answer, and what is none is an RPC error, so
// that the filter's own failure mode applies.
func TestCase20WhatIsNoAnswerIsUnavailable(t *testing.T) {
	each(t, func(t *testing.T, kind Kind) {
		conn, _, _ := served(t, kind, &byPath{})
		client := authv3.NewAuthorizationClient(conn)
		for path, want := range map[string]codes.Code{
			"/": codes.OK, "/refused": codes.OK, "/not-loaded": codes.Unavailable, "/overloaded": codes.Unavailable,
			"/failed": codes.Unavailable, "/broken": codes.Unavailable, "/panics": codes.Unavailable,
		} {
			res, err := client.Check(t.Context(), checkOf(path))
			if status.Code(err) != want {
				t.Errorf("%s: %v, want %v", path, err, want)
			}
			if refused := res.GetDeniedResponse() != nil; err == nil && refused != (path == "/refused") {
				t.Errorf("%s: %v", path, res)
			}
		}
		if _, err := client.Check(t.Context(), &authv3.CheckRequest{}); status.Code(err) != codes.InvalidArgument {
			t.Errorf("no HTTP request: %v", err)
		}
	})
}

func TestHealthFollowsReadiness(t *testing.T) {
	each(t, func(t *testing.T, kind Kind) {
		conn, s, _ := served(t, kind, &byPath{})
		client := healthv1.NewHealthClient(conn)
		for i, serving := range []bool{false, true, false} {
			if i > 0 { // at first nothing was said
				s.SetServing(serving)
			}
			for _, service := range []string{"", "envoy.service.auth.v3.Authorization"} {
				res, err := client.Check(t.Context(), &healthv1.HealthCheckRequest{Service: service})
				if err != nil || (res.GetStatus() == healthv1.HealthCheckResponse_SERVING) != serving {
					t.Errorf("%q: %v, %v; want serving %v", service, res, err, serving)
				}
			}
		}
		if _, err := client.Check(t.Context(), &healthv1.HealthCheckRequest{Service: "other"}); status.Code(err) != codes.NotFound {
			t.Errorf("another service: %v", err)
		}
	})
}

func TestChecksUnderWayFinishBeforeServeReturns(t *testing.T) {
	each(t, func(t *testing.T, kind Kind) {
		b := &byPath{entered: make(chan struct{}), hold: make(chan struct{})}
		conn, _, stop := served(t, kind, b)
		client := authv3.NewAuthorizationClient(conn)
		answered := make(chan error, 1)
		go func() {
			_, err := client.Check(context.Background(), checkOf("/held"))
			answered <- err
		}()
		<-b.entered
		ended := make(chan error, 1)
		go func() { ended <- stop() }()
		select {
		case err := <-ended:
			t.Fatalf("Serve returned (%v) with a check under way", err)
		case <-time.After(50 * time.Millisecond):
		}
		close(b.hold)
		if err := <-answered; err != nil {
			t.Errorf("the check under way: %v", err)
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func TestAnUnknownKindOfServerIsNamed(t *testing.T) {
	if _, err := New("fast", &byPath{}, nil, 0); err == nil || !strings.Contains(err.Error(), `"fast"`) || !strings.Contains(err.Error(), `["own" "grpc"]`) {
		t.Errorf("%v: want the kind and those that there are", err)
	}
}

func full() *authv3.CheckRequest {
	payload, _ := structpb.NewStruct(map[string]any{
		"b_payload": map[string]any{"sub": "bob", "n": 12345678901.0, "ok": true, "list": []any{"x"}},
		"a_payload": map[string]any{"sub": "alice"},
		"text":      "no payload",
	})
	return &authv3.CheckRequest{Attributes: &authv3.AttributeContext{
		Source: &authv3.AttributeContext_Peer{
			Principal: "spiffe://cluster/ns/shop/sa/web",
			Address: &corev3.Address{Address: &corev3.Address_SocketAddress{
				SocketAddress: &corev3.SocketAddress{Address: "2001:db8::7"},
			}},
		},
		Request: &authv3.AttributeContext_Request{Http: &authv3.AttributeContext_HttpRequest{
			Method: "POST", Path: "/orders/7?x=1", Host: "shop.example:8443",
			Headers: map[string]string{"x-api-key": "a,b", "origin": "https://shop.example"},
		}},
		ContextExtensions: map[string]string{"weir.target": "shop/Service/orders"},
		MetadataContext:   &corev3.Metadata{FilterMetadata: map[string]*structpb.Struct{jwtFilter: payload}},
	}}
}

func TestAWholeCheckIsConverted(t *testing.T) {
	var req match.Request
	if _, ok := convert(full(), &req, nil); !ok {
		t.Fatal("refused")
	}
	if req.Method != "POST" || req.Path != "/orders/7?x=1" || req.Host != "shop.example:8443" ||
		req.Peer != netip.MustParseAddr("2001:db8::7") || req.Principal != "spiffe://cluster/ns/shop/sa/web" ||
		req.Target != "shop/Service/orders" || req.Headers.Joined["x-api-key"] != "a,b" {
		t.Errorf("request = %+v", req)
	}
	for name, want := range map[string]string{"sub": "alice", "n": "12345678901", "ok": "true", "list": "", "none": ""} {
		if got, _ := req.Claims.Claim(name); got != want {
			t.Errorf("claim %s = %q, want %q", name, got, want)
		}
	}
	if c := content.CallerOf(&req); c.Origin != "https://shop.example" || c.GRPC {
		t.Errorf("caller = %+v", c)
	}
}

// Cases 10, 11: repeated headers, in either form that Envoy sends, are the same counter; and any bytes
// are a value.
func TestCase10Case11BothHeaderFormsConvertAlike(t *testing.T) {
	spec := "  client: [{source: Header, name: x-api-key}]\n  limits: [{name: each, counters: [Client], rates: [{limit: 10, window: 1s}]}]\n"
	m := matcher(t, policyOf(t, spec))
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.SliceOfN(rapid.Byte(), 0, 8), 1, 3).Draw(t, "values")
		joined, raw := full(), full()
		h := raw.Attributes.Request.Http
		h.Headers, h.HeaderMap = nil, &corev3.HeaderMap{}
		var texts []string
		for _, v := range values {
			texts = append(texts, string(v))
			h.HeaderMap.Headers = append(h.HeaderMap.Headers, &corev3.HeaderValue{Key: "x-api-key", RawValue: v})
		}
		joined.Attributes.Request.Http.Headers = map[string]string{"x-api-key": strings.Join(texts, ",")}
		a, b := hits(t, m, joined), hits(t, m, raw)
		if a != b {
			t.Fatalf("%q: counter %v joined, %v raw", values, a, b)
		}
	})
}

func TestGRPCCallersAreKnownByTheirContentType(t *testing.T) {
	for contentType, want := range map[string]bool{
		"application/grpc": true, "application/grpc+proto": true, "application/grpc;x=1": true,
		"application/grpc-web": false, "application/json": false, "": false,
	} {
		joined := match.Request{Headers: match.Headers{Joined: map[string]string{"content-type": contentType}}}
		raw := match.Request{Headers: match.Headers{Raw: []match.Header{{Name: "content-type", Value: contentType}}}}
		if content.CallerOf(&joined).GRPC != want || content.CallerOf(&raw).GRPC != want {
			t.Errorf("%q: want %v", contentType, want)
		}
	}
}
