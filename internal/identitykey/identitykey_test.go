package identitykey

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestReadSaysWhatAKeyIs(t *testing.T) {
	dir := t.TempDir()
	file := func(n int) string {
		path := filepath.Join(dir, "k")
		if err := os.WriteFile(path, bytes.Repeat([]byte{7}, n), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	if k, err := Read(file(32)); err != nil || k.Fingerprint() == 0 {
		t.Errorf("32 bytes: %v", err)
	}
	for name, path := range map[string]string{"none": "", "missing": "no-such-key"} {
		if _, err := Read(path); err == nil || !strings.Contains(err.Error(), "weir key") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, n := range []int{0, 31, 33, 64} {
		if _, err := Read(file(n)); err == nil || !strings.Contains(err.Error(), "weir key") {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
}
