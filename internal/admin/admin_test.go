package admin

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
	"go.uber.org/zap"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newServer(c Config) *Server { return New(c, zap.NewNop()) }

func ask(s *Server, method, path, remote, host, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.RemoteAddr, r.Host = remote, host
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, r)
	return w
}

func get(s *Server, path string) *httptest.ResponseRecorder {
	return ask(s, "GET", path, "10.0.0.9:1234", "10.0.0.1:9192", "")
}

func TestReadyzNamesEveryPartAndWhy(t *testing.T) {
	s := newServer(Config{})
	policies := false
	s.Ready("policies", func() (bool, []string) { return policies, []string{"the policy topic is not read to its end"} })
	s.Ready("decisions", func() (bool, []string) { return true, []string{"degraded: no header yet"} })

	w := get(s, "/readyz")
	var got State
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if w.Code != 503 || got.Ready || len(got.Parts) != 2 || got.Parts[0].Reasons[0] != "the policy topic is not read to its end" {
		t.Errorf("not ready: %d %+v", w.Code, got)
	}
	policies = true
	if w := get(s, "/readyz"); w.Code != 200 || !strings.Contains(w.Body.String(), "degraded: no header yet") {
		t.Errorf("ready but degraded: %d %s", w.Code, w.Body)
	}
}

func TestHealthzIsAliveBeforeAnythingIsReady(t *testing.T) {
	s := newServer(Config{})
	s.Ready("x", func() (bool, []string) { return false, nil })
	if w := get(s, "/healthz"); w.Code != 200 {
		t.Errorf("healthz: %d", w.Code)
	}
}

func TestDebugIsForThisMachineOnly(t *testing.T) {
	s := newServer(Config{})
	s.HandleDebug("GET /debug/policies", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		WriteJSON(w, 200, []string{"shop/orders"})
	}))
	for _, tt := range []struct {
		remote, host string
		want         int
	}{
		{"127.0.0.1:5", "127.0.0.1:9192", 200},
		{"[::1]:5", "localhost:9192", 200},
		{"@", "localhost", 200},
		{"10.0.0.9:5", "127.0.0.1:9192", 403},
		{"[fe80::1]:5", "localhost", 403},
		{"127.0.0.1:5", "evil.example:9192", 403}, // a page that rebound its own name to loopback
	} {
		for _, path := range []string{"/debug/policies", "/debug/pprof/cmdline"} {
			if w := ask(s, "GET", path, tt.remote, tt.host, ""); w.Code != tt.want {
				t.Errorf("%s from %s as %s: %d, want %d", path, tt.remote, tt.host, w.Code, tt.want)
			}
		}
	}
}

func TestMetricsMayHaveAnAddressOfTheirOwn(t *testing.T) {
	for _, apart := range []string{"", "tcp://127.0.0.1:0"} {
		s := newServer(Config{MetricsAddress: apart})
		c := prometheus.NewCounter(prometheus.CounterOpts{Name: "weir_test_total"})
		s.Registry().MustRegister(c)
		w := get(s, "/metrics")
		if (w.Code == 200) != (apart == "") {
			t.Errorf("metrics address %q: /metrics on the admin address answers %d", apart, w.Code)
		}
		w = httptest.NewRecorder()
		s.metricsOnly().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
		if !strings.Contains(w.Body.String(), "weir_test_total 0") {
			t.Error("the part's metric is not served")
		}
	}
}

func TestBodiesAreBoundedAndStrict(t *testing.T) {
	s := newServer(Config{})
	s.HandleDebug("POST /debug/explain", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var v struct{ Method string }
		if ReadJSON(w, r, &v) {
			WriteJSON(w, 200, v)
		}
	}))
	for body, want := range map[string]int{
		`{"method":"GET"}`: 200,
		`{"metod":"GET"}`:  400,
		`{`:                400,
		`{"method":"` + strings.Repeat("x", MaxBody) + `"}`: 413,
	} {
		if w := ask(s, "POST", "/debug/explain", "127.0.0.1:1", "localhost", body); w.Code != want {
			t.Errorf("%.20s…: %d, want %d", body, w.Code, want)
		}
	}
}

func TestRunServesUntilItsContextEnds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	s := newServer(Config{Address: "unix://" + path, MetricsAddress: "tcp://127.0.0.1:0"})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()

	transport := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		for {
			c, err := (&net.Dialer{}).DialContext(ctx, "unix", path)
			if err == nil || ctx.Err() != nil {
				return c, err
			}
		}
	}}
	res, err := (&http.Client{Transport: transport}).Get("http://localhost/healthz")
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("Run = %v", err)
	}
	if _, err := net.Dial("unix", path); err == nil {
		t.Error("it still listens after Run")
	}
}

func TestRunFailsWhereItCannotListen(t *testing.T) {
	if err := newServer(Config{Address: "tcp://127.0.0.1:99999"}).Run(t.Context()); err == nil {
		t.Error("no error for an impossible port")
	}
}
