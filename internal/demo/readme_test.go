package demo

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/weirproxy/weir/internal/policy"
)

// blocks are the YAML blocks of the README.
func blocks(t *testing.T) []string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, m := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllSubmatch(b, -1) {
		out = append(out, string(m[1]))
	}
	return out
}

func TestTheREADMEsPolicyIsValid(t *testing.T) {
	found := false
	for _, b := range blocks(t) {
		if strings.Contains(b, "kind: QuotaPolicy") {
			found = true
			if _, err := policy.Parse("README.md", []byte(b)); err != nil {
				t.Error(err)
			}
		}
	}
	if !found {
		t.Error("the README shows no policy")
	}
}

// Envoy takes the README's filter and cluster as they are.
func TestTheREADMEsEnvoyConfigurationIsValid(t *testing.T) {
	all := blocks(t)
	binary := realEnvoy(t)
	for _, b := range all {
		filters, clusters, ok := strings.Cut(b, "\nclusters:\n")
		if !ok {
			continue
		}
		config := `static_resources:
  listeners:
  - name: l
    address: {socket_address: {address: 127.0.0.1, port_value: 0}}
    filter_chains:
    - filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: l
          route_config: {virtual_hosts: [{name: l, domains: ["*"], routes: [{match: {prefix: /}, direct_response: {status: 200}}]}]}
` + indent(filters, "          ") + "  clusters:\n" + indent(clusters, "  ")
		file := filepath.Join(shortDir(t), "envoy.yaml")
		if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(binary, "--mode", "validate", "--disable-hot-restart", "-c", file).CombinedOutput()
		if err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	t.Error("the README shows no Envoy configuration")
}

func indent(text, by string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(by + line)
	}
	if !strings.HasSuffix(text, "\n") {
		b.WriteByte('\n')
	}
	return b.String()
}
