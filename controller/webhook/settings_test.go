package webhook

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/zap"
)

const goodSettings = "image: registry.example/weir-sidecar:1\nkafka: {brokers: ['kafka:9092']}\n"

func TestAChangedSettingsFileIsTakenUpAndABadOneIsNot(t *testing.T) {
	file := filepath.Join(t.TempDir(), "settings.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(goodSettings)
	s, err := follow(file, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	first := s.engine()
	if s.again(); s.engine() != first || s.problem() != "" {
		t.Error("the same file made another engine")
	}
	for _, bad := range []string{"image: x\nmood: good\n", "image: x\n", ":", ""} {
		write(bad)
		if s.again(); s.engine() != first || s.problem() == "" {
			t.Errorf("%q: the last good engine is in force: %v; problem %q", bad, s.engine() == first, s.problem())
		}
	}
	if !strings.Contains(s.problem(), "image") {
		t.Errorf("the problem does not name what is wrong: %q", s.problem())
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if s.again(); s.engine() != first || !strings.Contains(s.problem(), "no such file") {
		t.Errorf("without the file: %q", s.problem())
	}
	write(goodSettings)
	if s.again(); s.problem() != "" {
		t.Errorf("the good file is back, and it says %q", s.problem())
	}
	write(strings.Replace(goodSettings, ":1", ":2", 1))
	if s.again(); s.engine() == first || s.problem() != "" {
		t.Errorf("another good file is not in force (%q)", s.problem())
	}
}

func TestASettingsFileThatIsWrongAtTheStartIsAnError(t *testing.T) {
	file := filepath.Join(t.TempDir(), "settings.yaml")
	if _, err := follow(file, zap.NewNop()); err == nil {
		t.Error("there is no file, and no error")
	}
	if err := os.WriteFile(file, []byte("mode: Native\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := follow(file, zap.NewNop()); err == nil || !strings.Contains(err.Error(), "image") {
		t.Errorf("got %v, want what is missing", err)
	}
}
