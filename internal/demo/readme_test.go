package demo

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/weirproxy/weir/internal/listen"
	"github.com/weirproxy/weir/internal/policy"
	"github.com/weirproxy/weir/internal/render"
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

// What the README shows of Envoy's configuration is what weir render prints, which a real Envoy takes (test/system).
func TestTheREADMEsEnvoyConfigurationIsWhatIsPrinted(t *testing.T) {
	printed, err := render.Envoy(render.Options{
		Targets: []string{"shop/Service/orders"}, Check: listen.Address{Network: "unix", Path: "/run/weir/check.sock"},
		Listener: "0.0.0.0:8080", Admin: "127.0.0.1:9901", Service: "127.0.0.1:8081",
	})
	if err != nil {
		t.Fatal(err)
	}
	lines := map[string]bool{}
	for line := range strings.Lines(string(printed)) {
		text, _, _ := strings.Cut(line, " # ")
		lines[strings.TrimRight(text, " \n")] = true
	}
	shown := 0
	for _, b := range blocks(t) {
		if !strings.Contains(b, "ext_authz") {
			continue
		}
		for line := range strings.Lines(b) {
			shown++
			if !lines[strings.TrimRight(line, "\n")] {
				t.Errorf("weir render envoy does not print %q", line)
			}
		}
	}
	if shown == 0 {
		t.Error("the README shows no Envoy configuration")
	}
}
