package obs

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"go.uber.org/zap"
	"k8s.io/client-go/rest"
	controllerruntime "sigs.k8s.io/controller-runtime/pkg/metrics"

	aggregator "github.com/weirproxy/weir/aggregator/metrics"
	"github.com/weirproxy/weir/aggregator/partition"
	"github.com/weirproxy/weir/api/config"
	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/controller"
	"github.com/weirproxy/weir/controller/certs"
	"github.com/weirproxy/weir/controller/webhook"
	"github.com/weirproxy/weir/internal/bus"
	"github.com/weirproxy/weir/sidecar/agent"
	"github.com/weirproxy/weir/sidecar/feed"
	sidecar "github.com/weirproxy/weir/sidecar/metrics"
	"github.com/weirproxy/weir/test/parts"
)

// catalog is what may be asked for: labels by metric, and values by metric and label where the program bounds them.
type catalog struct {
	labels map[string][]string
	values map[string][]string // by metric/label
}

// scraped are the labels that a collector adds to each series.
var scraped = []string{"job", "instance", "namespace", "pod", "container"}

// known is everything that is registered where metrics are served.
func known(t *testing.T) catalog {
	t.Helper()
	c := catalog{labels: map[string][]string{}, values: map[string][]string{}}
	weir := prometheus.NewRegistry()
	m := sidecar.New(weir, sidecar.Sources{
		Slots: func() (int, int, int) { return 0, 0, 0 }, Overflowed: func() uint64 { return 0 },
		Known: func() (int, uint64) { return 0, 0 },
		Ready: func() bool { return true }, Degraded: func() bool { return false },
	})
	m.Limit("shop/orders", "each")
	for _, reason := range feed.AllIgnored() {
		m.Ignored(string(reason), 1)
	}
	m.Degraded([]string{
		agent.ReasonKafka, agent.ReasonPolicies, agent.ReasonPolicyTopic, agent.ReasonInstallation, agent.ReasonDecisions,
		agent.ReasonLivePods, agent.ReasonRefused, agent.ReasonConflict, agent.ReasonNoPolicy, agent.ReasonStateFile,
		agent.ReasonUsage, agent.ReasonReports, agent.ReasonStrict,
	})
	aggregator.New(weir).Observe(0, partition.Stats{}, partition.Gauges{})
	webhook.NewMetrics(weir)
	certs.New(certs.Config{}, nil, weir, zap.NewNop())
	weir.MustRegister(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	c.describe(t, weir)
	c.observe(t, weir)
	controllers(t, func() {
		c.describe(t, controllerruntime.Registry.(prometheus.Collector))
		c.observe(t, controllerruntime.Registry)
	})

	// Prometheus's own, with the labels of all alerts; and kube-apiserver's (k8s.io/apiserver/pkg/admission/metrics).
	c.labels["ALERTS"] = []string{"alertname", "alertstate", "severity"}
	c.labels["apiserver_admission_webhook_fail_open_count"] = []string{"name", "type"}
	return c
}

// controllers calls f while a controller runs, and so has its metrics in controller-runtime's registry. Nothing is there for
// it, which it waits for.
func controllers(t *testing.T, f func()) {
	t.Helper()
	port, err := parts.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	address := fmt.Sprintf("127.0.0.1:%d", port)
	c, err := controller.New(controller.Config{
		Namespace: "weir-system", REST: &rest.Config{Host: "http://127.0.0.1:1"}, IdentityKey: make([]byte, wirev1.KeySize),
		Kafka:          bus.Config{Brokers: []string{"127.0.0.1:1"}},
		LeaderElection: config.LeaderElection{Enabled: true, Lease: "weir-controller"},
		Metrics:        config.ControllerMetrics{Address: "tcp://" + address},
	}, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	parts.Eventually(t, time.Minute, "the controller's metrics", func() error {
		r, err := http.Get("http://" + address + "/metrics")
		if err != nil {
			return err
		}
		return r.Body.Close()
	})
	f()
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("the controller: %v", err)
	}
}

// described is how a Desc prints: the library gives no other way to its parts.
var described = regexp.MustCompile(`^Desc\{fqName: "([^"]*)",.* variableLabels: \{([^}]*)\}`)

func (c catalog) describe(t *testing.T, from prometheus.Collector) {
	t.Helper()
	descs := make(chan *prometheus.Desc)
	go func() {
		from.Describe(descs)
		close(descs)
	}()
	for d := range descs {
		m := described.FindStringSubmatch(d.String())
		if m == nil {
			t.Fatalf("the description of a metric does not read as expected: %s", d)
		}
		c.labels[m[1]] = []string{}
		for l := range strings.SplitSeq(m[2], ",") {
			if l != "" {
				c.labels[m[1]] = append(c.labels[m[1]], strings.TrimSpace(l))
			}
		}
	}
}

// observe takes the values of labels that the program bounds; policies, limits and partitions it does not.
func (c catalog) observe(t *testing.T, from prometheus.Gatherer) {
	t.Helper()
	families, err := from.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.Metric {
			for _, l := range m.Label {
				if slices.Contains([]string{"outcome", "reason", "mode", "since", "part"}, l.GetName()) {
					at := f.GetName() + "/" + l.GetName()
					c.values[at] = append(c.values[at], l.GetValue())
				}
			}
		}
	}
}

// labelsOf are the labels that a metric has, its histogram's parts among them.
func (c catalog) labelsOf(metric string) (set, error) {
	of, ok := c.labels[metric]
	for _, suffix := range []string{"_bucket", "_sum", "_count"} {
		base, is := strings.CutSuffix(metric, suffix)
		if !ok && is {
			of, ok = c.labels[base]
			of = append(slices.Clone(of), "le")
		}
	}
	if !ok {
		return nil, fmt.Errorf("no program has the metric %s", metric)
	}
	return newSet(of, scraped), nil
}

type set map[string]bool

func newSet(lists ...[]string) set {
	s := set{}
	for _, l := range lists {
		for _, x := range l {
			s[x] = true
		}
	}
	return s
}
