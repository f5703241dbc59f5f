package parts_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weirproxy/weir/test/parts"
)

func TestProgramIsBuiltFromThisSource(t *testing.T) {
	p := parts.Program(t, "weir", "--help")
	if err := p.Wait(time.Minute); err != nil {
		t.Fatal(err)
	}
	if out := p.Output(); !strings.Contains(out, "weir") {
		t.Errorf("weir --help wrote %q", out)
	}
}

func TestProgramsAreStatic(t *testing.T) {
	for _, name := range []string{"weir", "weir-aggregator", "weir-sidecar"} {
		path := parts.Command(t, name).Path
		if filepath.Base(path) != name {
			t.Errorf("%s is at %s", name, path)
		}
		out, err := exec.Command("go", "version", "-m", path).CombinedOutput()
		if err != nil || !strings.Contains(string(out), "CGO_ENABLED=0") {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}
