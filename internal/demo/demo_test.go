package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// The whole of it, without Envoys: everything starts, the limit is seen on every pod, the result has the keys
// that scripts read and adds up, and nothing is left.
func TestTheDemoRunsAndAddsUp(t *testing.T) {
	t.Setenv("TMPDIR", shortDir(t))
	var out, errs bytes.Buffer
	if err := Run(t.Context(), Options{NoEnvoy: true, For: 3 * time.Second, JSON: true, Out: &out, Err: &errs}); err != nil {
		t.Fatalf("%v\n%s", err, errs.String())
	}
	var keys map[string]any
	var r Result
	if json.Unmarshal(out.Bytes(), &keys) != nil || json.Unmarshal(out.Bytes(), &r) != nil {
		t.Fatalf("not one JSON object: %s", out.String())
	}
	var names []string
	for k := range keys {
		names = append(names, k)
	}
	slices.Sort(names)
	want := "admitted decision_age_ms_p99 enforce_ms limit offered over_percent refused window worst_window"
	if got := strings.Join(names, " "); got != want {
		t.Errorf("keys %s, want %s", got, want)
	}
	if r.Offered != r.Admitted+r.Refused || r.Admitted == 0 || r.Refused == 0 || r.Limit != 300 || r.Window != "1s" {
		t.Errorf("result: %+v", r)
	}
	if r.WorstWindow > r.Admitted || r.WorstWindow == 0 {
		t.Errorf("fullest window %d of %d admitted", r.WorstWindow, r.Admitted)
	}
	if left, _ := os.ReadDir(os.TempDir()); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestTheDemoEndsWhileItStarts(t *testing.T) {
	t.Setenv("TMPDIR", shortDir(t))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out bytes.Buffer
	if err := Run(ctx, Options{NoEnvoy: true, Out: &out, Err: &out}); err != nil {
		t.Error(err)
	}
	if left, _ := os.ReadDir(os.TempDir()); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestTheDemoSaysWhatIsWrong(t *testing.T) {
	t.Setenv("TMPDIR", shortDir(t))
	bad := filepath.Join(t.TempDir(), "bad.yaml")
	if err := os.WriteFile(bad, []byte("kind: Nothing\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		Options
		want string
	}{
		"pods":     {Options{Pods: 99}, "--pods 99"},
		"load":     {Options{Load: -1}, "--load"},
		"for":      {Options{For: -1}, "--for"},
		"both":     {Options{NoEnvoy: true, Envoy: "x"}, "--no-envoy"},
		"policy":   {Options{Policy: bad, NoEnvoy: true}, "bad.yaml:1"},
		"no file":  {Options{Policy: "no-such.yaml", NoEnvoy: true}, "no-such.yaml"},
		"no envoy": {Options{Envoy: "no-such-envoy"}, "no-such-envoy"},
	} {
		o := tt.Options
		o.Out, o.Err = &bytes.Buffer{}, &bytes.Buffer{}
		if err := Run(t.Context(), o); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
}
