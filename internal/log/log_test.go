package log

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

func TestALineIsOneJSONObjectWithConstantNames(t *testing.T) {
	var out bytes.Buffer
	New(&out, zapcore.InfoLevel, "weir-sidecar").Named("feed").
		Warn("decisions are late", zap.Int32(Partition, 3), zap.Duration(Duration, 1500*time.Millisecond))
	var line map[string]any
	if err := json.Unmarshal(out.Bytes(), &line); err != nil {
		t.Fatalf("%v in %q", err, out.String())
	}
	for name, want := range map[string]any{
		"program": "weir-sidecar", "part": "feed", "level": "warn", "msg": "decisions are late",
		"partition": 3.0, "duration": "1.5s",
	} {
		if line[name] != want {
			t.Errorf("%s = %v, want %v", name, line[name], want)
		}
	}
	if _, err := time.Parse(time.RFC3339Nano, line["time"].(string)); err != nil {
		t.Error(err)
	}
}

func TestNothingIsSampledAndLowerLevelsAreSilent(t *testing.T) {
	var out bytes.Buffer
	l := New(&out, zapcore.InfoLevel, "x")
	for range 1000 {
		l.Info("same")
		l.Debug("quiet")
	}
	if n := strings.Count(out.String(), "\n"); n != 1000 {
		t.Errorf("%d lines, want 1000", n)
	}
}

func TestParseLevelSaysWhatItKnows(t *testing.T) {
	if l, err := ParseLevel("warn"); err != nil || l != zapcore.WarnLevel {
		t.Errorf("warn: %v, %v", l, err)
	}
	for _, bad := range []string{"loud", "WARN", "fatal", "panic"} {
		if _, err := ParseLevel(bad); err == nil || !strings.Contains(err.Error(), "debug info warn error") {
			t.Errorf("%s: %v, want the known levels", bad, err)
		}
	}
}
