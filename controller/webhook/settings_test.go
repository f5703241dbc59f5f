package webhook

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/weirproxy/weir/controller/certs"
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
	s := follow(file, zap.NewNop())
	first := s.engine()
	if s.again(); first == nil || s.engine() != first || s.problem() != "" {
		t.Error("the same file made another engine")
	}
	for _, bad := range []string{"image: x\nmood: good\n", "image: x\n", ":", ""} {
		write(bad)
		s.again()
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
	s.again()
	if s.again(); s.problem() != "" {
		t.Errorf("the good file is back, and it says %q", s.problem())
	}
	before := s.engine()
	write(strings.Replace(goodSettings, ":1", ":2", 1))
	if s.again(); s.engine() != before {
		t.Error("a file is used though it may be half written")
	}
	if s.again(); s.engine() == before || s.problem() != "" {
		t.Errorf("another good file is not in force (%q)", s.problem())
	}
}

// The rest of the controller runs on, and pods are admitted without a sidecar.
func TestWithoutGoodSettingsAtTheStartNothingIsInjectedUntilTheyCome(t *testing.T) {
	file := filepath.Join(t.TempDir(), "settings.yaml")
	good := certs.Config{Mode: certs.Files, Directory: t.TempDir()}
	w, err := New(Config{Settings: file, Certificates: good}, Dependencies{Registry: prometheus.NewRegistry(), Cluster: enabled(), Log: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"", "mode: Native\n"} {
		if bad != "" {
			if err := os.WriteFile(file, []byte(bad), 0o600); err != nil {
				t.Fatal(err)
			}
			w.settings.again()
			w.settings.again()
		}
		if ready, why := w.Ready(); ready || !strings.Contains(strings.Join(why, ""), "no pod gets a sidecar: ") {
			t.Errorf("%q: %v, %q", bad, ready, why)
		}
		if r := review(t, w.server.handler, pod); !r.Allowed || r.Patch != nil || !strings.Contains(strings.Join(r.Warnings, ""), "settings cannot be used") {
			t.Errorf("%q: %+v", bad, r)
		}
	}
	if err := os.WriteFile(file, []byte(goodSettings), 0o600); err != nil {
		t.Fatal(err)
	}
	w.settings.again()
	w.settings.again()
	if r := review(t, w.server.handler, pod); r.Patch == nil {
		t.Errorf("with good settings: %+v", r)
	}
}
