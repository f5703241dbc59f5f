package istio

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/weirproxy/weir/test/parts"
)

// version is that of the Istio that a proxy is of; istiod keeps new ways from old proxies by it.
const version = "1.31.0"

// Envoy is a real Envoy configured by istiod.
type Envoy struct {
	*parts.Process
	admin string // host:port
}

// StartEnvoy runs the Envoy of a pod, or with kind router of a gateway's pod, until the test ends, and
// returns when it has taken up a configuration from istiod. The pod exists and has an address. Call it
// once what is to be configured has been applied.
func (i *Istiod) StartEnvoy(t testing.TB, kind string, pod *corev1.Pod) *Envoy {
	t.Helper()
	root, err := parts.Root()
	if err != nil {
		t.Fatal(err)
	}
	e := &Envoy{admin: freeAddress(t)}
	text, err := yaml.Marshal(bootstrap(kind, pod, i.ads, e.admin))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "bootstrap.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	e.Process = parts.Start(t, "envoy of "+pod.Name, exec.Command(filepath.Join(root, ".tools", "bin", "envoy"),
		"--config-path", file, "--concurrency", "1", "--log-level", "warning", "--disable-hot-restart"))
	parts.Eventually(t, patience, "Envoy configured by istiod", func() error { return ready("http://"+e.admin+"/ready", e.Process) })
	return e
}

// bootstrap asks istiod for everything. What it says of the node is what Istio's agent says.
func bootstrap(kind string, pod *corev1.Pod, ads, admin string) any {
	type m = map[string]any
	address := func(hostPort string) m {
		host, port, _ := strings.Cut(hostPort, ":")
		number, _ := strconv.Atoi(port)
		return m{"socket_address": m{"address": host, "port_value": number}}
	}
	labels := m{}
	for k, v := range pod.Labels {
		labels[k] = v
	}
	return m{
		"node": m{
			"id":      fmt.Sprintf("%s~%s~%s.%s~%s.svc.cluster.local", kind, pod.Status.PodIP, pod.Name, pod.Namespace, pod.Namespace),
			"cluster": pod.Name,
			"metadata": m{
				"NAMESPACE": pod.Namespace, "NAME": pod.Name, "LABELS": labels, "CLUSTER_ID": "Kubernetes", "INTERCEPTION_MODE": "NONE",
				"ISTIO_VERSION": version,
			},
		},
		"admin": m{"address": address(admin)},
		"dynamic_resources": m{
			"ads_config": m{"api_type": "GRPC", "transport_api_version": "V3", "grpc_services": []m{{"envoy_grpc": m{"cluster_name": "xds-grpc"}}}},
			"lds_config": m{"ads": m{}, "resource_api_version": "V3"},
			"cds_config": m{"ads": m{}, "resource_api_version": "V3"},
		},
		"static_resources": m{"clusters": []m{{
			"name": "xds-grpc", "type": "STATIC", "connect_timeout": "1s",
			"typed_extension_protocol_options": m{"envoy.extensions.upstreams.http.v3.HttpProtocolOptions": m{
				"@type":                "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
				"explicit_http_config": m{"http2_protocol_options": m{}},
			}},
			"load_assignment": m{"cluster_name": "xds-grpc", "endpoints": []m{{"lb_endpoints": []m{{"endpoint": m{"address": address(ads)}}}}}},
		}}},
	}
}

// Stat sums the counters of clusters whose names end in suffix, such as ext_authz.denied.
func (e *Envoy) Stat(t testing.TB, suffix string) (sum int) {
	t.Helper()
	text, err := get("http://" + e.admin + "/stats?type=Counters")
	if err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(strings.NewReader(text)); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), ": ")
		if n, err := strconv.Atoi(value); err == nil && strings.HasPrefix(name, "cluster.") && strings.HasSuffix(name, suffix) {
			sum += n
		}
	}
	return sum
}

// Await waits until the listeners and routes in force have each of some texts: istiod tells of changes in
// its own time.
func (e *Envoy) Await(t testing.TB, texts ...string) {
	t.Helper()
	parts.Eventually(t, patience, "what was applied in force", func() error {
		config, err := e.Config()
		if err != nil {
			return err
		}
		if strings.Contains(config, "warming_state") {
			return errors.New("listeners are warming")
		}
		for _, want := range texts {
			if !strings.Contains(config, want) {
				return fmt.Errorf("no %s", want)
			}
		}
		return nil
	})
}

// Config is the listeners and routes that istiod gave, as the admin server shows them.
func (e *Envoy) Config() (string, error) {
	listeners, err := get("http://" + e.admin + "/config_dump?resource=dynamic_listeners")
	if err != nil {
		return "", err
	}
	routes, err := get("http://" + e.admin + "/config_dump?resource=dynamic_route_configs")
	return listeners + routes, err
}

func get(url string) (string, error) {
	resp, err := asker.Get(url)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = errors.New(resp.Status)
	}
	return string(text), err
}
