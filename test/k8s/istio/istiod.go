package istio

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/weirproxy/weir/test/k8s/cluster"
	"github.com/weirproxy/weir/test/parts"
)

const (
	patience   = 60 * time.Second
	rootSpace  = "istio-system"
	istioSpace = "istio.io/istio"
)

// noMutualTLS is for the whole mesh: nobody here signs certificates.
const noMutualTLS = `
apiVersion: security.istio.io/v1
kind: PeerAuthentication
metadata: {name: default, namespace: istio-system}
spec: {mtls: {mode: DISABLE}}
`

// Istiod is a running istiod.
type Istiod struct {
	cluster *cluster.Cluster
	ads     string // host:port, plaintext
}

// CRDs is the file with Istio's definitions, out of the very module that istiod is built from.
func CRDs(t testing.TB) string {
	t.Helper()
	return filepath.Join(module(t, istioSpace), "manifests", "charts", "base", "files", "crd-all.gen.yaml")
}

// GatewayCRDs is the directory with Gateway API's definitions, as istiod knows them.
func GatewayCRDs(t testing.TB) string {
	t.Helper()
	return filepath.Join(module(t, "sigs.k8s.io/gateway-api"), "config", "crd", "standard")
}

// module is the directory of a module that the Kubernetes tools are built from.
func module(t testing.TB, path string) string {
	t.Helper()
	root, err := parts.Root()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", path)
	cmd.Dir = filepath.Join(root, "tools", "kubernetes")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list -m %s in tools/kubernetes: %v", path, err)
	}
	return strings.TrimSpace(string(out))
}

// Start runs istiod until the test ends, and returns when it is ready. values are values of the chart
// istiod, of which only meshConfig counts, as weir render istio --mesh-config prints them; lists of several
// are put together. The cluster has Istio's CRDs.
func Start(t testing.TB, c *cluster.Cluster, values ...string) *Istiod {
	t.Helper()
	c.Namespace(t, rootSpace, nil)
	c.Apply(t, noMutualTLS)
	addresses := make([]string, 3)
	for i := range addresses {
		addresses[i] = freeAddress(t)
	}
	cmd := c.Command(context.WithoutCancel(t.Context()), t, "pilot-discovery", "discovery",
		"--kubeconfig", c.Kubeconfig, "--meshConfig", meshFile(t, values),
		"--grpcAddr", addresses[0], "--httpAddr", addresses[1], "--monitoringAddr", addresses[2],
		"--secureGRPCAddr", "", "--httpsAddr", "", "--ctrlz_port", "0", "--profile=false", "--log_output_level", "default:warn")
	cmd.Dir = t.TempDir()
	cmd.Env = append(cmd.Env, "POD_NAMESPACE="+rootSpace, "POD_NAME=istiod-0",
		// Filters of Istio's own build.
		"PILOT_ENABLE_METADATA_EXCHANGE=false", "PILOT_ENABLE_ALPN_FILTER=false")
	p := parts.Start(t, "istiod", cmd)
	parts.Eventually(t, patience, "istiod ready", func() error {
		return ready("http://"+addresses[1]+"/ready", p)
	})
	return &Istiod{cluster: c, ads: addresses[0]}
}

func ready(url string, p *parts.Process) error {
	select {
	case <-p.Done():
		return errors.New("it has ended")
	default:
	}
	_, err := get(url)
	return err
}

// meshFile writes the mesh's configuration.
func meshFile(t testing.TB, values []string) string {
	t.Helper()
	mesh := map[string]any{"enableAutoMtls": false, "enablePrometheusMerge": false}
	var providers []any
	for _, text := range values {
		var v struct {
			MeshConfig struct {
				ExtensionProviders []any `json:"extensionProviders"`
			} `json:"meshConfig"`
		}
		if err := yaml.Unmarshal([]byte(text), &v); err != nil {
			t.Fatal(err)
		}
		providers = append(providers, v.MeshConfig.ExtensionProviders...)
	}
	mesh["extensionProviders"] = providers
	text, err := yaml.Marshal(mesh)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "mesh.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func freeAddress(t testing.TB) string {
	t.Helper()
	port, err := parts.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("127.0.0.1:%d", port)
}

// asker bounds every question to a server under test.
var asker = &http.Client{Timeout: 5 * time.Second}
