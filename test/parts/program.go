package parts

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// buildFlagsEnv names the environment variable with flags for building weir's
// programs, split at spaces: -race for a run under the race detector.
const buildFlagsEnv = "WEIR_BUILD_FLAGS"

// shipped are the flags that `make build` builds with, so that what is tested and measured is what
// people run; the Makefile says why.
var shipped = []string{"-trimpath", "-tags=grpcnotrace", "-ldflags=-s -w"}

// Program starts one of weir's own programs, built from the source as it was
// when this process first asked for one. It is ended when the test ends, and
// its output logged if the test failed.
func Program(t T, name string, args ...string) *Process {
	t.Helper()
	return Start(t, name, Command(t, name, args...))
}

// Command is Program not yet started, for one that needs an environment or a
// working directory of its own.
func Command(t T, name string, args ...string) *exec.Cmd {
	t.Helper()
	dir, err := builtPrograms()
	if err != nil {
		t.Fatalf("%v", err)
	}
	path := filepath.Join(dir, name)
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("no such program in cmd: %v", err)
	}
	return exec.Command(path, args...)
}

// builtPrograms builds all of ./cmd once a process, and returns the directory
// they are in.
var builtPrograms = sync.OnceValues(func() (string, error) {
	root, err := Root()
	if err != nil {
		return "", err
	}
	flags := strings.Fields(os.Getenv(buildFlagsEnv))
	dir := filepath.Join(root, "bin", "test"+strings.Join(flags, ""))
	return dir, build(root, dir, flags)
})

// build builds ./cmd/... into dir, which is kept between runs so that programs
// that did not change are not linked again. Test processes of other packages
// build there too, one after the other.
func build(root, dir string, flags []string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	unlock, err := lock(dir + ".lock")
	if err != nil {
		return err
	}
	defer unlock()
	args := slices.Concat([]string{"build", "-o", dir + string(filepath.Separator)}, shipped, flags, []string{"./cmd/..."})
	cmd := exec.Command("go", args...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED="+cgoFor(flags))
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build weir's programs: %w\n%s", err, out)
	}
	return nil
}

// cgoFor returns what CGO_ENABLED must be: weir is shipped static, and the race
// detector needs cgo.
func cgoFor(flags []string) string {
	if slices.Contains(flags, "-race") {
		return "1"
	}
	return "0"
}
