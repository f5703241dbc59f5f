package system

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/weirproxy/weir/test/parts"
)

var (
	wholeBlock  = regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$")
	anyTimeouts = regexp.MustCompile(`(?m)^ *(connect_timeout|timeout|stream_idle_timeout|request_headers_timeout): `)
)

// What docs/envoy.md tells people to start from is a configuration that Envoy accepts.
func TestEnvoyTakesTheDocumentedConfiguration(t *testing.T) {
	root, err := parts.Root()
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(root, "docs", "envoy.md"))
	if err != nil {
		t.Fatal(err)
	}
	blocks := wholeBlock.FindAllSubmatch(page, -1)
	if len(blocks) == 0 {
		t.Fatal("docs/envoy.md has no configuration")
	}
	for _, b := range blocks {
		if err := parts.ValidateEnvoy(t, b[1]); err != nil {
			t.Errorf("%v", err)
		}
		if n := len(anyTimeouts.FindAll(b[1], -1)); n < 5 {
			t.Errorf("only %d time-outs are explicit", n)
		}
	}
	if err := parts.ValidateEnvoy(t, []byte("static_resources: {listener: []}\n")); err == nil {
		t.Error("Envoy takes anything")
	}
}
