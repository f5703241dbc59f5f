package examples

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/weirproxy/weir/test/parts"
)

var (
	policyBlock = regexp.MustCompile("(?ms)^```yaml\n(apiVersion: weirproxy\\.dev/.*?)^```$")
	link        = regexp.MustCompile(`\]\(([^)#:]+)(?:#[^)]*)?\)`)
)

// guides are what people read first.
func guides(t *testing.T) map[string]string {
	t.Helper()
	root, err := parts.Root()
	if err != nil {
		t.Fatal(err)
	}
	pages, err := filepath.Glob(filepath.Join(root, "examples", "*", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"examples/README.md", "docs/kubernetes.md", "docs/containers.md"} {
		pages = append(pages, filepath.Join(root, name))
	}
	out := map[string]string{}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		out[page] = string(text)
	}
	return out
}

// test/k8s/examples puts the same policies to a kube-apiserver.
func TestTheGuidesPoliciesAreValid(t *testing.T) {
	n := 0
	for page, text := range guides(t) {
		for _, b := range policyBlock.FindAllStringSubmatch(text, -1) {
			n++
			cmd := parts.Command(t, "weir", "validate", "-")
			cmd.Stdin = strings.NewReader(b[1])
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%s: %v\n%s", page, err, bytes.TrimSpace(out))
			}
		}
	}
	if n == 0 {
		t.Error("the guides have no policy")
	}
}

func TestTheGuidesLinksLead(t *testing.T) {
	n := 0
	for page, text := range guides(t) {
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			n++
			if _, err := os.Stat(filepath.Join(filepath.Dir(page), m[1])); err != nil {
				t.Errorf("%s: %v", page, err)
			}
		}
	}
	if n < 20 {
		t.Errorf("only %d links", n)
	}
}
