package live

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirproxy/weir/test/parts"
	"github.com/weirproxy/weir/test/world"
)

// prometheus is a real one that collects once a second from all of a world's programs.
type prometheus struct{ base string }

// startPrometheus gives each series the labels that the chart's monitors would.
func startPrometheus(t *testing.T, w *world.World) *prometheus {
	t.Helper()
	dir := t.TempDir()
	rules, err := filepath.Abs(filepath.Join(files, "alerts", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "global: {scrape_interval: 1s, evaluation_interval: 1s}\nrule_files: [%s]\nscrape_configs:\n", rules)
	scrape := func(job, namespace, pod, address string) {
		fmt.Fprintf(&b, "- job_name: %s\n  static_configs: [{targets: ['%s'], labels: {namespace: %s, pod: %[1]s, container: %[4]s}}]\n"+
			"  relabel_configs: [{target_label: job, replacement: %[4]s}]\n", pod, address, namespace, job)
	}
	for _, o := range w.Owners {
		scrape("weir-aggregator", "weir-system", o.Name, o.Admin)
	}
	for _, p := range w.Pods {
		scrape("weir-sidecar", "shop", p.Name, p.Admin)
	}
	config := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(config, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	port, err := parts.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	address := fmt.Sprintf("127.0.0.1:%d", port)
	parts.Start(t, "prometheus", exec.Command(program(t), "--config.file="+config,
		"--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+address, "--log.level=warn"))
	return &prometheus{"http://" + address}
}

// program is that of make prometheus, or the one on PATH.
func program(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs("../../../.tools/bin/prometheus")
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		if path, err = exec.LookPath("prometheus"); err != nil {
			t.Skip("no prometheus: make prometheus")
		}
	}
	return path
}

func (p *prometheus) ask(path string, into any) error {
	c := http.Client{Timeout: 10 * time.Second}
	r, err := c.Get(p.base + path)
	if err != nil {
		return err
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	if r.StatusCode != http.StatusOK {
		return fmt.Errorf("%d: %s", r.StatusCode, b)
	}
	return json.Unmarshal(b, into)
}

// count is how many series a query gives now.
func (p *prometheus) count(query string) (int, error) {
	var r struct{ Data struct{ Result []any } }
	err := p.ask("/api/v1/query?query="+url.QueryEscape(query), &r)
	return len(r.Data.Result), err
}

// pending are the alerts whose condition holds, whether for long enough or not; but for the controller's, which is not here.
func (p *prometheus) pending(t *testing.T) (names []string) {
	t.Helper()
	var r struct {
		Data struct {
			Alerts []struct{ Labels map[string]string }
		}
	}
	if err := p.ask("/api/v1/alerts", &r); err != nil {
		t.Fatal(err)
	}
	for _, a := range r.Data.Alerts {
		if name := a.Labels["alertname"]; name != "WeirControllerWithoutLeader" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
