package examples

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/weirproxy/weir/test/parts"
)

// patience guards against a hang and measures nothing.
const patience = 60 * time.Second

// runner is the program of examples/run, built once for all tests.
var runner string

func TestMain(m *testing.M) { os.Exit(withRunner(m)) }

func withRunner(m *testing.M) int {
	dir, err := os.MkdirTemp("", "weir-examples-")
	if err == nil {
		defer os.RemoveAll(dir)
		runner = filepath.Join(dir, "run")
		var root string
		if root, err = parts.Root(); err == nil {
			build := exec.Command("go", "build", "-trimpath", "-tags=grpcnotrace", "-o", runner, "./examples/run")
			build.Dir, build.Stderr = root, os.Stderr
			err = build.Run()
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "build examples/run:", err)
		return 1
	}
	return m.Run()
}

// example is one that runs.
type example struct {
	t    *testing.T
	proc *parts.Process
	said string
	urls map[string]string // of each service's Envoy
}

// run is the command that runs an example, on ports that are free, with the programs that tests build.
func run(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(runner, append([]string{"-port", "0", "-bin", filepath.Dir(parts.Command(t, "weir").Path)}, args...)...)
	root, err := parts.Root()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Dir = root
	return cmd
}

var shownURL = regexp.MustCompile(`(?m)^  curl .* (http://\S+)/    # (\w+)$`)

// start runs an example and waits until it has shown its quota.
func start(t *testing.T, args ...string) *example {
	t.Helper()
	e := &example{t: t, proc: parts.Start(t, "examples/run", run(t, args...)), urls: map[string]string{}}
	t.Cleanup(func() { _ = e.proc.Stop() }) // before it would be killed, which leaves processes behind
	parts.Eventually(t, patience, "the example runs", func() error {
		select {
		case <-e.proc.Done():
			t.Fatal("it ended by itself")
		default:
		}
		if e.said = e.proc.Output(); !strings.Contains(e.said, "Ctrl-C ends all") {
			return fmt.Errorf("it has said:\n%s", e.said)
		}
		return nil
	})
	for _, m := range shownURL.FindAllStringSubmatch(e.said, -1) {
		e.urls[m[2]] = m[1]
	}
	return e
}

// end ends the example as Ctrl-C does, in order.
func (e *example) end() {
	e.t.Helper()
	if err := e.proc.Stop(); err != nil {
		e.t.Error(err)
	}
	for name, url := range e.urls {
		if _, err := ask(url, "late"); err == nil {
			e.t.Errorf("%s answers after the end", name)
		}
	}
}

// anHour is an example's policy with its window made so long that it does not end within a test, however slow.
func anHour(t *testing.T, policy, window string) string {
	t.Helper()
	root, err := parts.Root()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, policy))
	if err != nil {
		t.Fatal(err)
	}
	longer := bytes.Replace(text, []byte("window: "+window), []byte("window: 1h"), 1)
	if bytes.Equal(longer, text) {
		t.Fatalf("%s has no window of %s", policy, window)
	}
	file := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(file, longer, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
