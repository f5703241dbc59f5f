package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/weirproxy/weir/api/config"
	"github.com/weirproxy/weir/internal/cli"
)

func TestMain(m *testing.M) {
	// The library of Kafka keeps one goroutine of meters for ever, the one of Kubernetes its logs' flusher.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/rcrowley/go-metrics.(*meterArbiter).tick"),
		goleak.IgnoreAnyFunction("k8s.io/klog/v2.(*flushDaemon).run.func1"))
}

type outcome struct {
	code     int
	out, err string
}

func controllerCLI(t *testing.T, args ...string) outcome {
	t.Helper()
	var out, errs bytes.Buffer
	code := cli.Execute(context.WithoutCancel(t.Context()), root(), args, cli.Streams{In: strings.NewReader(""), Out: &out, Err: &errs})
	return outcome{code, out.String(), errs.String()}
}

func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestValidateSaysEveryMistakeWithItsPlace(t *testing.T) {
	dir := t.TempDir()
	key := write(t, dir, "key", strings.Repeat("k", 32))
	settings := write(t, dir, "settings.yaml", "image: weir-sidecar\nkafka: {brokers: ['k:9092']}\n")
	good := write(t, dir, "good.yaml", "kafka: {brokers: ['k:9092']}\nidentityKeyFile: "+key+"\ninjection: {settings: "+settings+"}\n")
	for name, tt := range map[string]struct {
		args []string
		code int
		want []string
	}{
		"valid":             {[]string{"-c", good}, 0, []string{"valid; injection at tcp://0.0.0.0:9443"}},
		"without injection": {[]string{"-c", good, "--injection-enabled=false"}, 0, []string{"valid; without injection"}},
		"wrong values": {[]string{"-c", good, "--metrics-address", "here", "--log-level", "loud", "--watch-namespaces", "A_B"},
			1, []string{"metrics.address:", "log.level", "watchNamespaces[0]"}},
		"wrong settings of the injector": {[]string{"-c", good, "--injection-settings", write(t, dir, "bad.yaml", "imge: x\n")},
			1, []string{"bad.yaml:1: imge: unknown setting; did you mean image?"}},
		"no settings of the injector": {[]string{"-c", good, "--injection-settings", ""}, 1, []string{"injection.settings: is missing"}},
		"wrong certificates":          {[]string{"-c", good, "--injection-certificates-mode", "Own"}, 1, []string{"injection.certificates.mode"}},
		"nothing given":               {nil, 1, []string{"brokers", "identityKeyFile", "injection.settings"}},
		"unknown key":                 {[]string{"-c", write(t, dir, "worse.yaml", "leaderElection: {leese: x}\n")}, 1, []string{"worse.yaml:1: leaderElection.leese: unknown setting; did you mean lease?"}},
		"unknown flag":                {[]string{"--group-id", "x"}, 2, []string{"--group-id"}},
	} {
		o := controllerCLI(t, append([]string{"validate"}, tt.args...)...)
		if o.code != tt.code {
			t.Errorf("%s: exit code %d, want %d: %s%s", name, o.code, tt.code, o.out, o.err)
		}
		for _, w := range tt.want {
			if !strings.Contains(o.out+o.err, w) {
				t.Errorf("%s: %q is missing in\n%s%s", name, w, o.out, o.err)
			}
		}
	}
}

// A setting that reaches nothing is a lie in the reference page.
func TestEverySettingReachesTheController(t *testing.T) {
	c := config.DefaultController()
	c.Namespace, c.WatchNamespaces, c.Kubeconfig, c.IdentityKeyFile = "n", []string{"w"}, "f", "k"
	c.Kafka.Brokers = []string{"b:1"}
	c.Injection.Settings, c.Secrets.Kafka = "s", "k"
	m := mapped(c)
	v := reflect.ValueOf(m)
	elsewhere := map[string]bool{"REST": true, "IdentityKey": true, "Lease": true} // for tests
	for i := range v.NumField() {
		if f := v.Type().Field(i).Name; v.Field(i).IsZero() && !elsewhere[f] {
			t.Errorf("%s is not mapped", f)
		}
	}
}

// Started before Kafka and Kubernetes are there, it serves its probes, says what it waits for, and ends by its
// context.
func TestRunStartsWithNothingThereAndEndsCleanly(t *testing.T) {
	dir, err := os.MkdirTemp("", "c")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	kubeconfig := write(t, dir, "kubeconfig", `
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}]
contexts: [{name: c, context: {cluster: c, user: ""}}]
current-context: c
`)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var out, errs bytes.Buffer // read only once it has ended
	admin := "unix://" + filepath.Join(dir, "a")
	ended := make(chan int, 1)
	args := []string{"run", "--kafka-brokers", "127.0.0.1:1", "--kubeconfig", kubeconfig, "--namespace", "weir-system",
		"--identity-key-file", write(t, dir, "key", strings.Repeat("k", 32)), "--admin-address", admin, "--stop-grace", "20s",
		"--injection-enabled=false", "--metrics-address", "tcp://127.0.0.1:0"}
	go func() {
		ended <- cli.Execute(ctx, root(), args, cli.Streams{In: strings.NewReader(""), Out: &out, Err: &errs})
	}()
	for {
		if o := controllerCLI(t, "healthcheck", "--live", "--admin-address", admin); o.code == 0 {
			break
		}
		select {
		case code := <-ended:
			t.Fatalf("it ended with %d: %s", code, errs.String())
		case <-time.After(5 * time.Millisecond):
		}
	}
	if o := controllerCLI(t, "healthcheck", "--admin-address", admin); o.code != 1 || !strings.Contains(o.err, "kube-apiserver") {
		t.Errorf("readiness without Kubernetes: %+v", o)
	}
	cancel()
	if code := <-ended; code != 0 {
		t.Errorf("exit code %d: %s", code, errs.String())
	}
}

func TestWhatItLinks(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, pkg := range strings.Fields(string(out)) {
		for _, no := range []string{"github.com/twmb/", "github.com/alicebob/", "github.com/redis/", "github.com/envoyproxy/",
			"github.com/weirproxy/weir/sidecar", "github.com/weirproxy/weir/aggregator", "github.com/weirproxy/weir/test"} {
			if strings.HasPrefix(pkg, no) {
				t.Errorf("weir-controller links %s", pkg)
			}
		}
		if pkg == "testing" {
			t.Error("weir-controller links testing")
		}
	}
}
