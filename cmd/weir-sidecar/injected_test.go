package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/weirproxy/weir/internal/inject"
)

// injectedContainer is the sidecar that the injector puts into a pod with these annotations, with the files of its
// volumes in dir.
func injectedContainer(t *testing.T, dir, annotations string, change func(*inject.Settings)) corev1.Container {
	t.Helper()
	s := inject.DefaultSettings()
	s.Image = "weir-sidecar"
	s.Kafka.Brokers = []string{"127.0.0.1:1"} // nobody is there
	if change != nil {
		change(&s)
	}
	e, err := inject.New(s)
	if err != nil {
		t.Fatal(err)
	}
	in := "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: orders, namespace: shop}\nspec: {template: {metadata: {labels: {app: orders, example.com/tier: a.b_c-d}, annotations: " +
		annotations + "}, spec: {containers: [{name: envoy}]}}}\n"
	out, _, err := e.Stream([]byte(in), inject.Options{})
	if err != nil {
		t.Fatal(err)
	}
	// As the kubelet does: variables replaced, volumes mounted. The rest of the paths is the test's own.
	text := strings.NewReplacer("$(WEIR_POD_NAMESPACE)", "shop", "$(WEIR_POD_NAME)", "orders-1",
		"/etc/weir/", dir+"/", "/var/lib/weir", dir, "unix:///run/weir/", "unix://"+dir+"/").Replace(string(out))
	var d struct {
		Spec struct{ Template corev1.PodTemplateSpec }
	}
	if err := yaml.Unmarshal([]byte(text), &d); err != nil {
		t.Fatal(err)
	}
	for _, c := range append(d.Spec.Template.Spec.InitContainers, d.Spec.Template.Spec.Containers...) {
		if c.Name == inject.Container {
			return c
		}
	}
	t.Fatalf("no sidecar in\n%s", out)
	return corev1.Container{}
}

// mounted is a directory with the files of the Secrets.
func mounted(t *testing.T) string {
	t.Helper()
	dir := shortDir(t)
	for _, d := range []string{"identity", "kafka"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	write(t, dir, "identity/identity.key", strings.Repeat("k", 32))
	write(t, dir, "kafka/password", "secret")
	return dir
}

func TestWhatTheInjectorWritesIsAcceptedByThisProgram(t *testing.T) {
	for name, tt := range map[string]struct {
		annotations string
		change      func(*inject.Settings)
	}{
		"defaults":    {"{}", nil},
		"annotations": {`{weirproxy.dev/target: "Service/orders, Deployment/orders", weirproxy.dev/listen: "tcp://127.0.0.1:9300", weirproxy.dev/log-level: debug}`, nil},
		"everything": {"{}", func(s *inject.Settings) {
			s.Mode, s.Server, s.MaxCounters, s.LogLevel, s.MetricsAddress = inject.Plain, "grpc", 1000, "warn", ""
			s.KafkaSecret, s.Kafka.SASL.PasswordFile = "kafka", "password"
			s.Kafka.SASL.Mechanism, s.Kafka.SASL.Username = "SCRAM-SHA-512", "weir"
			s.Kafka.RackID, s.Kafka.ClientID, s.Kafka.Acks, s.Kafka.Topics.Usage = "r1", "id", "leader", "u"
			s.Grace = 3 * time.Second
		}},
	} {
		c := injectedContainer(t, mounted(t), tt.annotations, tt.change)
		if c.Args[0] != "run" {
			t.Fatalf("%s: args %q", name, c.Args)
		}
		code, out, errs := execute(t.Context(), append([]string{"validate"}, c.Args[1:]...)...)
		if code != 0 || !strings.Contains(out, "this is shop/orders-1") {
			t.Errorf("%s: exit code %d: %s%s\nwith %q", name, code, out, errs, c.Args)
		}
	}
}

// Kafka is away: the pod starts, the hooks and probes are commands that this program has, and readiness says what it
// waits for.
func TestCase19AnInjectedSidecarStartsWithoutKafka(t *testing.T) {
	dir := mounted(t)
	c := injectedContainer(t, dir, "{}", func(s *inject.Settings) { s.Mode, s.MetricsAddress = inject.Plain, "" })
	here := "--admin-address=unix://" + dir + "/admin.sock" // 9192 is this machine's, not a pod's
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	go func() {
		code, _, errs := execute(ctx, append(c.Args, here)...)
		t.Log(errs)
		ended <- code
	}()
	ask := func(e *corev1.ExecAction) (int, string) {
		code, out, errs := execute(ctx, append(e.Command[1:], here)...)
		return code, out + errs
	}
	if code, told := ask(c.Lifecycle.PostStart.Exec); code != 0 {
		t.Errorf("postStart: exit code %d: %s", code, told)
	}
	if code, told := ask(c.StartupProbe.Exec); code != 0 {
		t.Errorf("start-up probe: exit code %d: %s", code, told)
	}
	if code, told := ask(c.ReadinessProbe.Exec); code != 1 || !strings.Contains(told, "reasons") {
		t.Errorf("readiness probe: exit code %d: %s, want what it waits for", code, told)
	}
	stop()
	if code := <-ended; code != 0 {
		t.Errorf("exit code %d", code)
	}
}

func TestWait(t *testing.T) {
	ended, stop := context.WithCancel(t.Context())
	stop()
	if code, _, errs := execute(ended, "wait", "--for=1h"); code != 0 {
		t.Errorf("wait --for until SIGTERM: exit code %d: %s", code, errs)
	}
	nobody := "--admin-address=unix://" + shortDir(t) + "/none.sock"
	if code, _, errs := execute(t.Context(), "wait", "--live=1ms", nobody); code != 1 || !strings.Contains(errs, "did not answer within 1ms") {
		t.Errorf("wait --live without a program: exit code %d: %s", code, errs)
	}
	for _, args := range [][]string{{"wait"}, {"wait", "--live=1s", "--for=1s"}, {"wait", "--for=-1s"}} {
		if code, _, errs := execute(t.Context(), args...); code != 2 || !strings.Contains(errs, "one of --live and --for") {
			t.Errorf("%q: exit code %d: %s", args, code, errs)
		}
	}
}
