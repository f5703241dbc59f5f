package parts

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const modulePath = "github.com/weirproxy/weir"

// Root returns the top directory of weir's source, found upwards from the
// working directory.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for ; ; dir = filepath.Dir(dir) {
		if isRoot(dir) {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("not within weir's source")
		}
	}
}

func isRoot(dir string) bool {
	text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return false
	}
	first, _, _ := strings.Cut(string(text), "\n")
	return strings.TrimSpace(strings.TrimPrefix(first, "module")) == modulePath
}

// tool returns the path of something under .tools, and fails the test with
// the make target that brings it if it is not there.
func tool(t T, target string, elements ...string) string {
	t.Helper()
	root, err := Root()
	if err != nil {
		t.Fatalf("%v", err)
	}
	path := filepath.Join(append([]string{root, ".tools"}, elements...)...)
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%v", notInstalled(target, err))
	}
	return path
}

// onPath is tool for a program that the system's packages bring.
func onPath(t T, target, program string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		t.Fatalf("%v", notInstalled(target, err))
	}
	return path
}

func notInstalled(target string, err error) error {
	return fmt.Errorf("not installed: run make %s (%w)", target, err)
}
