package system

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirproxy/weir/test/parts"
	"github.com/weirproxy/weir/test/world"
)

// What a policy reads is all that the filter sends: a limit by a header holds, so that header was sent.
const renderedPolicies = `apiVersion: weirproxy.dev/v1alpha1
kind: QuotaPolicy
metadata: {name: orders, namespace: shop}
spec:
  targetRefs: [{kind: Service, name: orders}]
  client: [{source: Header, name: x-api-key}]
  limits: [{name: each-client, counters: [Client], rates: [{limit: 3, window: 1h}]}]
---
apiVersion: weirproxy.dev/v1alpha1
kind: QuotaPolicy
metadata: {name: sold, namespace: shop}
spec:
  targetRefs: [{kind: HTTPRoute, name: sold}]
  limits: [{name: sold, rates: [{limit: 2, window: 1h}]}]
---
apiVersion: weirproxy.dev/v1alpha1
kind: QuotaPolicy
metadata: {name: stock, namespace: shop}
spec:
  targetRefs: [{kind: HTTPRoute, name: stock}]
  limits: [{name: stock, rates: [{limit: 4, window: 1h}]}]
`

// renderedEnvoy is a real Envoy that runs what weir render envoy prints, as it is printed.
type renderedEnvoy struct {
	t               *testing.T
	listener, admin string
}

// startRendered renders with more flags, starts the Envoy, and waits until its listener serves.
func startRendered(t *testing.T, flags ...string) *renderedEnvoy {
	t.Helper()
	root, err := parts.Root()
	if err != nil {
		t.Fatal(err)
	}
	e := &renderedEnvoy{t: t, listener: freeAddress(t), admin: freeAddress(t)}
	args := append([]string{"render", "envoy", "--listener", e.listener, "--admin", e.admin}, flags...)
	text, err := parts.Command(t, "weir", args...).Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			t.Logf("%s", exit.Stderr)
		}
		t.Fatalf("weir %v: %v", args, err)
	}
	file := filepath.Join(t.TempDir(), "envoy.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	parts.Start(t, "envoy", exec.Command(filepath.Join(root, ".tools", "bin", "envoy"),
		"--config-path", file, "--concurrency", "1", "--log-level", "warning", "--disable-hot-restart"))
	parts.Eventually(t, world.Patience, "Envoy ready", func() error {
		status, body, err := world.Get("http://" + e.admin + "/ready")
		if err == nil && status != http.StatusOK {
			err = errors.New(body)
		}
		return err
	})
	return e
}

func freeAddress(t *testing.T) string {
	t.Helper()
	port, err := parts.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("127.0.0.1:%d", port)
}

// get sends a request to a host, for a client, and returns the answer's status and header.
func (e *renderedEnvoy) get(host, client string) (int, http.Header) {
	e.t.Helper()
	r, err := http.NewRequest(http.MethodGet, "http://"+e.listener+"/", nil)
	if err != nil {
		e.t.Fatal(err)
	}
	r.Host = host
	r.Header.Set("x-api-key", client)
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		e.t.Fatal(err)
	}
	if err := res.Body.Close(); err != nil {
		e.t.Fatal(err)
	}
	return res.StatusCode, res.Header
}

// passes sends requests until one is refused, eight at most, and returns how many passed.
func (e *renderedEnvoy) passes(host, client string) int {
	e.t.Helper()
	for n := range 8 {
		status, header := e.get(host, client)
		switch status {
		case http.StatusOK:
		case http.StatusTooManyRequests:
			if header.Get("retry-after") == "" {
				e.t.Errorf("a refusal without retry-after: %v", header)
			}
			return n
		default:
			e.t.Fatalf("status %d", status)
		}
	}
	return 8
}

// stat is one of Envoy's counters; 0 where it was never touched.
func (e *renderedEnvoy) stat(name string) string {
	e.t.Helper()
	_, body, err := world.Get("http://" + e.admin + "/stats?filter=^" + name + "$")
	if err != nil {
		e.t.Fatal(err)
	}
	_, value, _ := strings.Cut(strings.TrimSpace(body), ": ")
	return value
}

func TestARealEnvoyRunsWhatIsRendered(t *testing.T) {
	w := world.Settled(t, 1, 1, renderedPolicies)
	gateway := w.AddPod("--target", "shop/HTTPRoute/sold", "--target", "shop/HTTPRoute/stock")
	w.Ready()

	pod := startRendered(t, "--target", "shop/orders", "--policies", w.Policies, "--check", "unix://"+w.Pods[0].Socket, "--service", w.Upstream.Addr())
	for _, client := range []string{"a", "b"} {
		if n := pod.passes("orders", client); n != 3 {
			t.Errorf("%d requests of client %s pass, want 3", n, client)
		}
	}
	if denied := pod.stat("cluster.service.ext_authz.weir.denied"); denied != "2" {
		t.Errorf("Envoy counts %q refusals, want 2", denied)
	}

	routes := startRendered(t, "--target", "shop/sold", "--target", "shop/stock", "--policies", w.Policies,
		"--check", "unix://"+gateway.Socket, "--service", w.Upstream.Addr())
	for host, want := range map[string]int{"sold.example.com": 2, "stock.example.com": 4} {
		if n := routes.passes(host, "a"); n != want {
			t.Errorf("%d requests to %s pass, want %d", n, host, want)
		}
	}
}

// Nobody listens where the check goes: the policies' failure mode decides, and it is no 403.
func TestRenderedFailureModes(t *testing.T) {
	up := parts.StartUpstream(t)
	flags := []string{"--check", "unix://" + parts.SocketPath(t), "--service", up.Addr()}
	for mode, want := range map[string]int{"LocalShare": http.StatusOK, "Deny": http.StatusServiceUnavailable} {
		file := filepath.Join(t.TempDir(), "policy.yaml")
		text := strings.Replace(world.Policy(world.EachClient(3, "")), "  limits:", "  failure: {mode: "+mode+"}\n  limits:", 1)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		e := startRendered(t, append([]string{"--target", "shop/orders", "--policies", file}, flags...)...)
		if status, _ := e.get("orders", "a"); status != want {
			t.Errorf("%s: status %d, want %d", mode, status, want)
		}
	}
}
