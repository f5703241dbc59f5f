package system

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/weirproxy/weir/test/parts"
	"github.com/weirproxy/weir/test/world"
)

// expectFailureModes wants both Envoys to take a check for failed: one lets the request pass, the
// other one answers with the filter's own status.
func (f *fronts) expectFailureModes(t *testing.T) {
	t.Helper()
	expectFailureModes(t, f.World, f.nobody, f.raw)
}

func expectFailureModes(t *testing.T, w *world.World, open, closed *parts.Envoy) {
	t.Helper()
	before := open.Stats()["http.ingress.ext_authz.failure_mode_allowed"]
	if a := w.Send(open, "GET", "/alive"); a.Status != http.StatusOK {
		t.Errorf("failure_mode_allow: true answers %d", a.Status)
	}
	if got := open.Stats()["http.ingress.ext_authz.failure_mode_allowed"] - before; got != 1 {
		t.Errorf("%d requests let through because the check failed, want 1", got)
	}
	upstream := w.Upstream.Count()
	a := w.Send(closed, "GET", "/alive")
	if a.Status != http.StatusServiceUnavailable || a.Header.Get("ratelimit") != "" {
		t.Errorf("failure_mode_allow: false answers %d %v", a.Status, a.Header)
	}
	if w.Upstream.Count() != upstream {
		t.Error("the request reached the service")
	}
}

// expectAnswered waits until checks are answered again: Envoy makes lost connections anew by itself.
func (f *fronts) expectAnswered(t *testing.T) {
	t.Helper()
	parts.Eventually(t, world.Patience, "checks answered", func() error {
		if a := f.Send(f.raw, "GET", "/alive"); a.Status != http.StatusOK || a.Header.Get("ratelimit") == "" {
			return fmt.Errorf("%d %v", a.Status, a.Header)
		}
		return nil
	})
}

// A frozen sidecar holds its connections open and never answers: the filter's time-out ends the wait.
func testFrozen(t *testing.T, f *fronts) {
	f.expectAnswered(t)
	if err := f.pod.Sidecar.Pause(); err != nil {
		t.Fatal(err)
	}
	f.expectFailureModes(t)
	if err := f.pod.Sidecar.Resume(); err != nil {
		t.Fatal(err)
	}
	f.expectAnswered(t)
}

// After SIGTERM there is no socket, after SIGKILL one that nobody listens on.
func testGone(t *testing.T, f *fronts) {
	for _, end := range []func() error{f.pod.Sidecar.Stop, func() error { f.pod.Sidecar.Kill(); return nil }} {
		f.expectAnswered(t)
		if err := end(); err != nil {
			t.Error(err)
		}
		f.expectFailureModes(t)
		f.whole.StartSidecar(f.pod)
		f.PodReady(f.pod)
	}
	f.expectAnswered(t)
}

// A sidecar that never had policies answers, and says UNAVAILABLE: the same failure modes.
func TestCase20NeverLoadedPolicies(t *testing.T) {
	w := world.New(t)
	nobody, err := parts.FreePort()
	w.Must(err)
	socket := parts.SocketPath(t)
	sidecar := parts.Program(t, "weir-sidecar", "run", "--listen", "unix://"+socket, "--target", world.Target,
		"--identity-key-file", w.Key, "--kafka-brokers", fmt.Sprintf("127.0.0.1:%d", nobody),
		"--pod-namespace", "shop", "--pod-name", "orders-0", "--admin-address", "")
	w.Upstream = parts.StartUpstream(t)
	pod := &world.Pod{Socket: socket}
	open := w.Front(pod, parts.EnvoyOpts{}, parts.Authz{Timeout: 5 * time.Second, FailureModeAllow: true})
	closed := w.Front(pod, parts.EnvoyOpts{}, parts.Authz{Timeout: 5 * time.Second, StatusOnError: http.StatusServiceUnavailable})
	parts.Eventually(t, world.Patience, "the sidecar listens", func() error { _, err := os.Stat(socket); return err })
	expectFailureModes(t, w, open, closed)
	for _, e := range []*parts.Envoy{open, closed} {
		if n := e.Stats()["cluster.checker.upstream_rq_200"]; n < 1 {
			t.Error("the sidecar was not even asked")
		}
	}
	if sidecar.ExitCode() != -1 {
		t.Error("the sidecar ended")
	}
}

// The mode is the address's, a stale socket is replaced (testGone), a live one is refused and left alone.
func testSockets(t *testing.T, f *fronts) {
	if info, err := os.Stat(f.pod.Socket); err != nil || info.Mode().Perm() != 0o660 {
		t.Errorf("the socket's mode is %v, %v; want 0660", info.Mode(), err)
	}
	code, out := f.Tool("weir-sidecar", f.sidecarOn(f.pod.Socket)...)
	if code != 1 || !strings.Contains(out, "another process listens on "+f.pod.Socket) {
		t.Errorf("a second sidecar on a live socket: exit code %d, %s", code, out)
	}
	f.expectAnswered(t)

	socket := parts.SocketPath(t)
	q := parts.Program(t, "weir-sidecar", f.sidecarOn(socket+"?mode=0600")...)
	parts.Eventually(t, world.Patience, "a socket of mode 0600", func() error {
		info, err := os.Stat(socket)
		if err == nil && info.Mode().Perm() != 0o600 {
			t.Fatalf("appeared with mode %v", info.Mode())
		}
		return err
	})
	if err := q.Stop(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(socket); !os.IsNotExist(err) {
		t.Errorf("the socket is left behind: %v", err)
	}
}

// sidecarOn are the arguments of another sidecar of the installation that counts for another target.
func (f *fronts) sidecarOn(socket string) []string {
	return []string{
		"run", "--listen", "unix://" + socket, "--target", "shop/Service/elsewhere", "--identity-key-file", f.Key,
		"--kafka-brokers", f.Kafka.Addr(), "--pod-namespace", "shop", "--pod-name", "elsewhere-0", "--admin-address", "",
	}
}

// With Kafka away a sidecar starts with the last good policies, and enforces them on what it counts itself.
func testRestartWithoutKafka(t *testing.T, f *fronts) {
	f.Kafka.Stop()
	f.pod.Sidecar.Kill()
	f.whole.StartSidecar(f.pod)
	f.expectAnswered(t)
	refused := false
	for range 30 {
		refused = f.Send(f.raw, "GET", "/bytes", "x-api-key", "after the restart").Status == 429 || refused
	}
	if !refused {
		t.Error("the last good policies are not enforced")
	}
	f.Kafka.Start()
	f.PodReady(f.pod)
	f.expectAnswered(t)
}
