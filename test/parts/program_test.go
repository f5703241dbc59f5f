package parts_test

import (
	"os"
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

// A sidecar beside every pod must be small: each node pulls it, and what is resident of it counts.
func TestTheSidecarIsSmall(t *testing.T) {
	if os.Getenv("WEIR_BUILD_FLAGS") != "" {
		t.Skip("WEIR_BUILD_FLAGS: this is not the program that is shipped")
	}
	const most = 20_000_000
	info, err := os.Stat(parts.Command(t, "weir-sidecar").Path)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%.1f MB", float64(info.Size())/1e6)
	if info.Size() > most {
		t.Errorf("weir-sidecar has %d bytes, at most %d: what links more than it did?", info.Size(), most)
	}
}
