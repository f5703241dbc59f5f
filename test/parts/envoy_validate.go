package parts

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// ValidateEnvoy has a real Envoy read a whole configuration, without serving, and returns what it
// objects to.
func ValidateEnvoy(t T, config []byte) error {
	t.Helper()
	binary := tool(t, "envoy", "bin", "envoy")
	file := filepath.Join(t.TempDir(), "envoy.yaml")
	if err := os.WriteFile(file, config, 0o600); err != nil {
		t.Fatalf("%v", err)
	}
	cmd := exec.Command(binary, "--mode", "validate", "--config-path", file, "--log-level", "error", "--disable-hot-restart")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("envoy does not take the configuration: %w\n%s", err, out)
	}
	return nil
}
