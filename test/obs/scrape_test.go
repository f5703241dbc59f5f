package obs

import (
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/relabel"
	"go.yaml.in/yaml/v3"
)

// scrapes are the jobs that operate.md gives to those who are without Prometheus Operator.
func scrapes(t *testing.T) (jobs []job) {
	t.Helper()
	for block := range strings.SplitSeq(document(t, docs+"/operate.md"), "```") {
		config, is := strings.CutPrefix(block, "yaml\n")
		if !is || !strings.HasPrefix(config, "scrape_configs:") {
			continue
		}
		var c struct {
			Jobs []job `yaml:"scrape_configs"`
		}
		if err := yaml.Unmarshal([]byte(config), &c); err != nil {
			t.Fatal(err)
		}
		jobs = append(jobs, c.Jobs...)
	}
	return jobs
}

type job struct {
	Name    string            `yaml:"job_name"`
	Relabel []*relabel.Config `yaml:"relabel_configs"`
}

// target is what Prometheus finds of one port of a pod's container, and what becomes of it; kept by one job at most.
func target(t *testing.T, container, port string) (kept []labels.Labels) {
	t.Helper()
	for _, j := range scrapes(t) {
		for _, r := range j.Relabel {
			if err := r.Validate(model.UTF8Validation); err != nil {
				t.Fatalf("%s: %v", j.Name, err)
			}
		}
		found := labels.FromStrings("job", j.Name, "__address__", "10.0.0.1:9194",
			"__meta_kubernetes_namespace", "shop", "__meta_kubernetes_pod_name", "orders-0",
			"__meta_kubernetes_pod_container_name", container, "__meta_kubernetes_pod_container_port_name", port)
		if b := labels.NewBuilder(found); relabel.ProcessBuilder(b, j.Relabel...) {
			kept = append(kept, b.Labels())
		}
	}
	return kept
}

func TestTheScrapeConfigurationGivesTheLabelsThatAlertsGoBy(t *testing.T) {
	for _, program := range []string{"weir-sidecar", "weir-aggregator", "weir-controller"} {
		kept := target(t, program, "weir-metrics")
		if len(kept) != 1 {
			t.Errorf("%s is kept by %d jobs", program, len(kept))
			continue
		}
		for label, want := range map[string]string{"job": program, "namespace": "shop", "pod": "orders-0"} {
			if got := kept[0].Get(label); got != want {
				t.Errorf("%s: %s is %q, want %q", program, label, got, want)
			}
		}
	}
	for container, port := range map[string]string{"orders": "http", "weir-sidecar": "http", "orders-weir": "weir-metrics"} {
		if kept := target(t, container, port); len(kept) > 0 {
			t.Errorf("port %s of %s is collected", port, container)
		}
	}
}
