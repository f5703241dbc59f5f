package system

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/weirproxy/weir/test/parts"
	"github.com/weirproxy/weir/test/world"
)

// expectNamed wants headers, and of a refusal the body, to be of one limit.
func expectNamed(t *testing.T, a world.Answer, limit string) {
	t.Helper()
	name := `"cases/` + limit + `";`
	for _, header := range []string{"ratelimit", "ratelimit-policy"} {
		if got := a.Header.Values(header); len(got) != 1 || !strings.HasPrefix(got[0], name) {
			t.Errorf("%d: %s is %q, want that of %s", a.Status, header, got, limit)
		}
	}
	if a.Status < 400 {
		return
	}
	var body struct {
		Limit    string   `json:"limit"`
		Violated []string `json:"violated-policies"`
	}
	if err := json.Unmarshal([]byte(a.Body), &body); err != nil {
		t.Fatalf("body %q: %v", a.Body, err)
	}
	if body.Limit != limit || len(body.Violated) != 1 || body.Violated[0] != "cases/"+limit {
		t.Errorf("the body names %+v, want %s", body, limit)
	}
	if n, err := strconv.Atoi(a.Header.Get("retry-after")); err != nil || n < 1 {
		t.Errorf("retry-after is %q", a.Header.Get("retry-after"))
	}
}

// Two limits apply: the answer is of the tighter one while it passes, and of the one that refuses.
func testNamed(t *testing.T, f *fronts) {
	for range 3 {
		expectNamed(t, f.expect(t, f.raw, 200, "GET", "/named", "x-api-key", "a"), "narrow")
	}
	expectNamed(t, f.expect(t, f.raw, 429, "GET", "/named", "x-api-key", "a"), "narrow")
	expectNamed(t, f.expect(t, f.raw, 200, "GET", "/named", "x-api-key", "b"), "broad")
	expectNamed(t, f.expect(t, f.raw, 429, "GET", "/named", "x-api-key", "b"), "broad")
	parts.Eventually(t, world.Patience, "the access log names the limits that refused", func() error {
		out := f.raw.Process().Output()
		for _, line := range []string{"a refused narrow\n", "b refused broad\n"} {
			if !strings.Contains(out, line) {
				return fmt.Errorf("no line %q in %q", line, out)
			}
		}
		return nil
	})
}

// An hour's quota: the fields say when the civil hour ends, here in a zone half an hour off.
func testCalendar(t *testing.T, f *fronts) {
	left := func() int { // seconds to the next half past
		now := time.Now().Add(30 * time.Minute)
		return int(now.Truncate(time.Hour).Add(time.Hour).Sub(now).Seconds())
	}
	if left() < 20 { // the count would start anew meanwhile
		time.Sleep(25 * time.Second)
	}
	for range 3 {
		expectNamed(t, f.expect(t, f.joined, 200, "GET", "/hourly"), "hourly")
	}
	latest := left()
	a := f.expect(t, f.joined, 429, "GET", "/hourly")
	earliest := left()
	expectNamed(t, a, "hourly")
	if want := `"cases/hourly";q=3;w=3600`; a.Header.Get("ratelimit-policy") != want {
		t.Errorf("policy is %s, want %s", a.Header.Get("ratelimit-policy"), want)
	}
	var reset int
	if _, err := fmt.Sscanf(a.Header.Get("ratelimit"), `"cases/hourly";r=0;t=%d`, &reset); err != nil {
		t.Fatalf("%s: %v", a.Header.Get("ratelimit"), err)
	}
	if reset < earliest-2 || reset > latest+2 {
		t.Errorf("reset in %d s, the hour ends in %d", reset, latest)
	}
	if retry, _ := strconv.Atoi(a.Header.Get("retry-after")); retry < reset-1 {
		t.Errorf("retry after %d s, before the hour ends in %d", retry, reset)
	}
	f.counters(t, "hourly", 3)
}

// startGRPCUpstream answers every method with an empty message.
func startGRPCUpstream(t *testing.T) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.UnknownServiceHandler(func(_ any, s grpc.ServerStream) error {
		if err := s.RecvMsg(&emptypb.Empty{}); err != nil {
			return err
		}
		return s.SendMsg(&emptypb.Empty{})
	}))
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return l.Addr().String()
}

// retrying is what many clients have: UNAVAILABLE is tried again at once.
const retrying = `{"methodConfig": [{"name": [{}], "retryPolicy": {"maxAttempts": 5, "initialBackoff": "0.001s",
	"maxBackoff": "0.001s", "backoffMultiplier": 1, "retryableStatusCodes": ["UNAVAILABLE"]}}]}`

// A limited gRPC call is RESOURCE_EXHAUSTED and names the limit, so that clients that retry
// UNAVAILABLE make no storm of it.
func testGRPC(t *testing.T, f *fronts) {
	if passed := callThrough(t, f, parts.Authz{Timeout: 2 * time.Second}); passed != 3 {
		t.Errorf("%d calls passed, want 3", passed)
	}
	if passed := callThrough(t, f, parts.Authz{Timeout: 2 * time.Second, EncodeRawHeaders: true}); passed != 0 {
		t.Errorf("%d calls passed beyond the limit", passed)
	}
	if passed := callThrough(t, f, parts.Authz{Timeout: 2 * time.Second, AllowedHeaders: []string{"content-type"}}); passed != 0 {
		t.Errorf("%d calls passed beyond the limit, with allowed_headers", passed)
	}
}

// callThrough makes eight calls through an Envoy of its own and returns how many passed.
func callThrough(t *testing.T, f *fronts, authz parts.Authz) (passed int) {
	t.Helper()
	e := f.Front(f.pod, parts.EnvoyOpts{Upstream: startGRPCUpstream(t), UpstreamHTTP2: true}, authz)
	conn, err := grpc.NewClient(e.Addr(), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultServiceConfig(retrying))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	const calls = 8
	for range calls {
		if placed(t, conn) {
			passed++
		}
	}
	stats := e.Stats()
	if checks := stats["cluster.upstream.ext_authz.ok"] + stats["cluster.upstream.ext_authz.denied"]; checks != calls {
		t.Errorf("%d calls became %d requests", calls, checks)
	}
	return passed
}

// placed makes a call and reports whether it passed; otherwise it must be refused by the limit.
func placed(t *testing.T, conn *grpc.ClientConn) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), world.Patience)
	defer cancel()
	var header, trailer metadata.MD
	err := conn.Invoke(ctx, "/shop.Orders/Place", &emptypb.Empty{}, &emptypb.Empty{}, grpc.Header(&header), grpc.Trailer(&trailer))
	if err == nil {
		return true
	}
	s := status.Convert(err)
	if s.Code() != codes.ResourceExhausted || !strings.Contains(s.Message(), "grpc") {
		t.Errorf("a limited call is %v", err)
	}
	if md := metadata.Join(header, trailer); len(md.Get("retry-after")) != 1 {
		t.Errorf("no retry-after in %v", md)
	}
	return false
}
