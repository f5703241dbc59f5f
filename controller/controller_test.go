package controller

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/weirproxy/weir/api/config"
	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/internal/bus"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/rcrowley/go-metrics.(*meterArbiter).tick"),
		goleak.IgnoreAnyFunction("k8s.io/klog/v2.(*flushDaemon).run.func1"))
}

func valid() Config {
	return Config{
		Namespace: "weir-system", REST: &rest.Config{Host: "http://127.0.0.1:1"}, IdentityKey: make([]byte, wirev1.KeySize),
		Kafka:          bus.Config{Brokers: []string{"127.0.0.1:1"}},
		LeaderElection: config.LeaderElection{Enabled: true, Lease: "weir-controller"},
	}
}

// With nothing there it runs, says what it waits for, and ends when it is told to.
func TestNothingThereIsWaitedFor(t *testing.T) {
	c, err := New(valid(), zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	for {
		ready, reasons := c.Ready()
		said := strings.Join(reasons, "\n")
		if ready {
			t.Fatal("ready without a cluster")
		}
		if strings.Contains(said, "kubernetes: kube-apiserver does not answer") && strings.Contains(said, "kafka: ") {
			break
		}
		select {
		case err := <-ended:
			t.Fatalf("it ended with %v; it said\n%s", err, said)
		case <-time.After(5 * time.Millisecond):
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("it ended with %v", err)
	}
}

// A cluster without the definition is not an error of the program, but something to wait for and to say.
func TestAClusterWithoutPoliciesIsWaitedFor(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	cfg := valid()
	cfg.REST = &rest.Config{Host: server.URL}
	c, err := New(cfg, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	err = c.ask(t.Context())
	if err == nil || !strings.Contains(err.Error(), "install the chart weir-crds") {
		t.Errorf("%v", err)
	}
}

func TestValidateNamesWhatIsWrong(t *testing.T) {
	if err := valid().Validate(); err != nil {
		t.Errorf("a valid one: %v", err)
	}
	for want, change := range map[string]func(*Config){
		"kafka.brokers":          func(c *Config) { c.Kafka.Brokers = nil },
		"identityKeyFile":        func(c *Config) { c.IdentityKey = nil },
		"namespace: \"A\"":       func(c *Config) { c.Namespace = "A" },
		"watchNamespaces[1]":     func(c *Config) { c.WatchNamespaces = []string{"a", "a"} },
		"watchNamespaces[0]":     func(c *Config) { c.WatchNamespaces = []string{"*"} },
		"leaderElection.lease":   func(c *Config) { c.LeaderElection.Lease = "" },
		"metrics.address":        func(c *Config) { c.Metrics.Address = "unix:///m" },
		"injection.address":      func(c *Config) { c.Injection = config.Injection{Enabled: true, Settings: "s"} },
		"injection.settings":     func(c *Config) { c.Injection = config.Injection{Enabled: true, Address: "tcp://0.0.0.0:1"} },
		"secrets.kafka: \"a b\"": func(c *Config) { c.Secrets.Kafka = "a b" },
	} {
		c := valid()
		change(&c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s is missing in: %v", want, err)
		}
		if _, err := New(c, zap.NewNop()); err == nil {
			t.Errorf("%s: New took it", want)
		}
	}
}

// What the webhook asks before there is a cluster is an error, afterwards the newest session's answer.
func TestTheWebhooksReadersOutliveSessions(t *testing.T) {
	var c cluster
	key := client.ObjectKey{Name: "shop"}
	for name, r := range map[string]client.Reader{"cached": cached{&c}, "live": live{&c}} {
		if err := r.Get(t.Context(), key, &corev1.Namespace{}); !errors.Is(err, errNoCluster) {
			t.Errorf("%s: %v", name, err)
		}
		if err := r.List(t.Context(), &corev1.NamespaceList{}); !errors.Is(err, errNoCluster) {
			t.Errorf("%s: %v", name, err)
		}
	}
	with := func(name string) client.Reader {
		return fake.NewClientBuilder().WithObjects(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}).Build()
	}
	c.set(with("old"), with("old"))
	c.set(with("shop"), with("live"))
	if err := (cached{&c}).Get(t.Context(), key, &corev1.Namespace{}); err != nil {
		t.Error(err)
	}
	if err := (live{&c}).Get(t.Context(), key, &corev1.Namespace{}); err == nil {
		t.Error("the server was not asked")
	}
}
