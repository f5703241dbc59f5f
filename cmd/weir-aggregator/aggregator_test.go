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

	"github.com/weirproxy/weir/api/config"
	"github.com/weirproxy/weir/internal/cli"
)

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
	good := write(t, dir, "good.yaml", "kafka: {brokers: ['k:9092']}\nredis: {addresses: ['r:6379']}\nidentityKeyFile: "+key+"\ninstance: a-0\n")
	for name, tt := range map[string]struct {
		args []string
		code int
		want []string
	}{
		"valid": {[]string{"-c", good}, 0, []string{"valid; this is a-0 of group weir-aggregator"}},
		"wrong values": {[]string{"-c", good, "--handover", "Go", "--tick", "1h", "--redis-addresses", "r", "--log-level", "loud"},
			1, []string{"handover:", "tick:", "redis.addresses[0]", "log.level"}},
		"nothing given": {nil, 1, []string{"brokers", "redis.addresses", "identityKeyFile"}},
		"unknown key":   {[]string{"-c", write(t, dir, "bad.yaml", "redis: {adresses: []}\n")}, 1, []string{"bad.yaml:1: redis.adresses: unknown setting; did you mean addresses?"}},
		"unknown flag":  {[]string{"--group-id", "x"}, 2, []string{"--group-id"}},
	} {
		o := aggregatorCLI(t, append([]string{"validate"}, tt.args...)...)
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
func TestEverySettingReachesTheAggregator(t *testing.T) {
	c := config.DefaultAggregator()
	c.Instance, c.Policies, c.IdentityKeyFile = "i", "p", "k"
	c.Kafka.Brokers = []string{"b:1"}
	c.Redis = config.Redis{Addresses: []string{"r:1"}, Cluster: true, Sentinel: config.Sentinel{Master: "m", Username: "su", PasswordFile: "sp"},
		Timeout: time.Second, Username: "u", PasswordFile: "f", TLS: config.TLS{Enabled: true, CAFile: "ca", CertFile: "c", KeyFile: "k", ServerName: "n"}}
	c.Admin.MetricsAddress = "tcp://127.0.0.1:1"
	c.Topics.MinInSync = 2
	m := mapped(c)
	for name, got := range map[string]any{
		"Instance": m.Instance, "Group": m.Group, "Handover": m.Handover, "Policies": m.Policies, "IdentityKeyFile": m.IdentityKeyFile,
		"Flush": m.Flush, "Tick": m.Tick, "MaxCountersPerTarget": m.MaxCountersPerTarget, "Brokers": m.Kafka.Brokers,
		"Partitions": m.Topics.Partitions, "MinInSync": m.Topics.MinInSync, "Usage": m.Topics.Usage, "Admin": m.Admin.Address,
		"Metrics": m.Admin.MetricsAddress, "Grace": m.Grace,
	} {
		if reflect.ValueOf(got).IsZero() {
			t.Errorf("%s is not mapped", name)
		}
	}
	for _, part := range []any{m.Redis, m.Redis.TLS, m.Redis.Sentinel} {
		v := reflect.ValueOf(part)
		for i := range v.NumField() {
			if v.Field(i).IsZero() {
				t.Errorf("%s.%s is not mapped", v.Type(), v.Type().Field(i).Name)
			}
		}
	}
}

// Started before Kafka and Redis are there, it serves its probes, says what it waits for, and ends by its
// context.
func TestRunStartsWithNothingThereAndEndsCleanly(t *testing.T) {
	dir, err := os.MkdirTemp("", "a")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var out, errs bytes.Buffer // read only once it has ended
	admin := "unix://" + filepath.Join(dir, "a")
	ended := make(chan int, 1)
	args := []string{"run", "--kafka-brokers", "127.0.0.1:1", "--redis-addresses", "127.0.0.1:1", "--instance", "a-0",
		"--identity-key-file", write(t, dir, "key", strings.Repeat("k", 32)), "--admin-address", admin, "--stop-grace", "1s"}
	go func() {
		ended <- cli.Execute(ctx, root(), args, cli.Streams{In: strings.NewReader(""), Out: &out, Err: &errs})
	}()
	for {
		if o := aggregatorCLI(t, "healthcheck", "--live", "--admin-address", admin); o.code == 0 {
			break
		}
		select {
		case code := <-ended:
			t.Fatalf("it ended with %d: %s", code, errs.String())
		case <-time.After(5 * time.Millisecond):
		}
	}
	if o := aggregatorCLI(t, "healthcheck", "--admin-address", admin); o.code != 1 || !strings.Contains(o.err, "kafka") {
		t.Errorf("readiness without Kafka: %+v", o)
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
		for _, no := range []string{"github.com/twmb/", "github.com/alicebob/", "k8s.io/", "sigs.k8s.io/", "github.com/envoyproxy/",
			"github.com/weirproxy/weir/sidecar", "github.com/weirproxy/weir/controller", "github.com/weirproxy/weir/test"} {
			if strings.HasPrefix(pkg, no) {
				t.Errorf("weir-aggregator links %s", pkg)
			}
		}
		if pkg == "testing" {
			t.Error("weir-aggregator links testing")
		}
	}
}
