package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/weirproxy/weir/api/config"
	"github.com/weirproxy/weir/internal/bus"
	"github.com/weirproxy/weir/internal/cli"
)

func TestMain(m *testing.M) {
	// The library of Kafka keeps one goroutine of meters for ever.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/rcrowley/go-metrics.(*meterArbiter).tick"))
}

// buffer is a bytes.Buffer for several goroutines.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) { b.mu.Lock(); defer b.mu.Unlock(); return b.b.Write(p) }
func (b *buffer) String() string              { b.mu.Lock(); defer b.mu.Unlock(); return b.b.String() }

func execute(ctx context.Context, args ...string) (code int, out, errs string) {
	var o, e buffer
	code = cli.Execute(ctx, root(), args, cli.Streams{In: strings.NewReader(""), Out: &o, Err: &e})
	return code, o.String(), e.String()
}

func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "s")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func TestValidateSaysEveryMistakeWithItsPlace(t *testing.T) {
	dir := shortDir(t)
	key := write(t, dir, "key", strings.Repeat("k", 32))
	good := write(t, dir, "good.yaml", "kafka: {brokers: ['k:9092']}\nidentityKeyFile: "+key+"\npod: {namespace: shop, name: a}\n")
	for name, tt := range map[string]struct {
		args []string
		code int
		want []string
	}{
		"valid":         {[]string{"-c", good}, 0, []string{"valid; this is shop/a"}},
		"flags alone":   {[]string{"--kafka-brokers", "k:1", "--identity-key-file", key}, 0, []string{"the command line: valid"}},
		"wrong values":  {[]string{"-c", good, "--listen", "here", "--target", "orders", "--log-level", "loud", "--admin-address", "9", "--server", "fast"}, 1, []string{`server: "fast" is none; there are ["own" "grpc"]`, "listen:", "namespace/Kind/name", "log.level", "admin.address"}},
		"unknown key":   {[]string{"-c", write(t, dir, "bad.yaml", "kafak: {}\nmaxCounters: x\n")}, 1, []string{"bad.yaml:1: kafak: unknown setting; did you mean kafka?", "bad.yaml:2: maxCounters"}},
		"nothing given": {nil, 1, []string{"brokers", "identityKeyFile"}},
		"key too short": {[]string{"-c", good, "--identity-key-file", write(t, dir, "short", "k")}, 1, []string{"weir key"}},
		"unknown flag":  {[]string{"--lisen", "x"}, 2, []string{"--lisen"}},
	} {
		code, out, errs := execute(t.Context(), append([]string{"validate"}, tt.args...)...)
		if code != tt.code {
			t.Errorf("%s: exit code %d, want %d: %s%s", name, code, tt.code, out, errs)
		}
		for _, w := range tt.want {
			if !strings.Contains(out+errs, w) {
				t.Errorf("%s: %q is missing in\n%s%s", name, w, out, errs)
			}
		}
	}
}

// A setting that reaches nothing is a lie in the reference page: every field of the file must change what
// the sidecar is given.
func TestEverySettingReachesTheSidecar(t *testing.T) {
	c := config.DefaultSidecar()
	c.Pod = config.Pod{Namespace: "n", Name: "p", OwnerKind: "Deployment", OwnerName: "o", Labels: map[string]string{"a": "b"}}
	c.Targets, c.IdentityKeyFile, c.StateDir, c.MaxCounters = []string{"t"}, "k", "s", 7
	c.Kafka.Brokers, c.Admin.MetricsAddress, c.Stop.Grace = []string{"b:1"}, "tcp://127.0.0.1:1", time.Minute
	m := mapped(c)
	for name, got := range map[string]any{
		"Listen": m.Listen, "Server": m.Server, "Namespace": m.Namespace, "Pod": m.Pod, "OwnerKind": m.OwnerKind, "OwnerName": m.OwnerName,
		"Labels": m.Labels, "Targets": m.Targets, "IdentityKeyFile": m.IdentityKeyFile, "StateDir": m.StateDir,
		"MaxCounters": m.MaxCounters, "Brokers": m.Kafka.Brokers, "Topics": m.Topics.Usage, "Admin": m.Admin.Address,
		"Metrics": m.Admin.MetricsAddress, "Grace": m.Grace,
	} {
		if reflect.ValueOf(got).IsZero() {
			t.Errorf("%s is not mapped", name)
		}
	}
	if m.Kafka.ClientID != program {
		t.Errorf("client id %q", m.Kafka.ClientID)
	}
	if got := m.Topics.WithDefaults(); got.Usage != (bus.Topics{}).WithDefaults().Usage {
		t.Errorf("the file's default topics are not the bus's: %+v", got)
	}
}

// Started before Kafka is there, it listens, says what it waits for, and ends by its context.
func TestRunStartsWithNothingThereAndEndsCleanly(t *testing.T) {
	dir := shortDir(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var out, errs buffer
	ended := make(chan int, 1)
	admin := "unix://" + filepath.Join(dir, "a")
	go func() {
		ended <- cli.Execute(ctx, root(), []string{"run", "--listen", "unix://" + filepath.Join(dir, "c"), "--admin-address", admin,
			"--identity-key-file", write(t, dir, "key", strings.Repeat("k", 32)), "--kafka-brokers", "127.0.0.1:1",
			"--pod-name", "p", "--target", "default/Service/x", "--stop-grace", "1s"}, cli.Streams{In: strings.NewReader(""), Out: &out, Err: &errs})
	}()
	for {
		if code, _, _ := execute(t.Context(), "healthcheck", "--live", "--admin-address", admin); code == 0 {
			break
		}
		select {
		case code := <-ended:
			t.Fatalf("it ended with %d: %s", code, errs.String())
		case <-time.After(5 * time.Millisecond):
		}
	}
	if code, _, why := execute(t.Context(), "healthcheck", "--admin-address", admin); code != 1 || !strings.Contains(why, "reasons") {
		t.Errorf("readiness without Kafka: %d, %s", code, why)
	}
	cancel()
	if code := <-ended; code != 0 {
		t.Errorf("exit code %d: %s", code, errs.String())
	}
	if _, err := os.Lstat(filepath.Join(dir, "c")); !os.IsNotExist(err) {
		t.Error("the socket is left behind")
	}
}

func TestWhatItLinks(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, pkg := range strings.Fields(string(out)) {
		for _, no := range []string{"github.com/redis/rueidis", "github.com/twmb/", "github.com/alicebob/", "k8s.io/", "sigs.k8s.io/",
			"github.com/weirproxy/weir/aggregator", "github.com/weirproxy/weir/controller", "github.com/weirproxy/weir/test", "testing"} {
			if pkg == no || strings.HasPrefix(pkg, no) && no != "testing" {
				t.Errorf("weir-sidecar links %s", pkg)
			}
		}
	}
}
