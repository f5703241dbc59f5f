//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"
)

// TestMain lets the test's own binary be the no-op server that newRig starts.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "-serve-noop" {
		exit(serveNoop(os.Args[2]))
	}
	os.Exit(m.Run())
}

// The whole of it once, too short to measure anything: every request is answered as its variant says (run fails
// otherwise), every variant has its figures, and the disturbances come and go.
func TestEachVariantIsMeasured(t *testing.T) {
	r := run(t, options{rounds: 1, each: 50 * time.Millisecond, warm: 50 * time.Millisecond, clients: 100, suites: suites})
	for i := range r.rows {
		w := &r.rows[i]
		if w.Rate <= 0 || w.P50 <= 0 || w.P99 < w.P50 || w.Envoy <= 0 || w.Variant != "no filter" && w.Checker <= 0 {
			t.Errorf("%s: %+v", w, w)
		}
	}
	if len(r.rows) != 4*6+2*7+5 || len(r.bars) != 4+3 {
		t.Errorf("%d rows, %d bars", len(r.rows), len(r.bars))
	}
	var lines bytes.Buffer
	if err := r.writeJSON(&lines); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(lines.String()) {
		var v map[string]any
		if err := json.Unmarshal([]byte(line), &v); err != nil || len(v) == 0 {
			t.Errorf("%s: %v", line, err)
		}
	}
}

// A bar is missed by more than it allows, and by nothing else.
func TestBars(t *testing.T) {
	measured := func(variant string, n int, cpu, added, p99 float64) row {
		return row{Suite: "servers", Variant: variant, Case: "allow", Connections: n, Checker: cpu, AddedP50: added, P99: p99}
	}
	r := report{rows: []row{
		measured(noopName, 1, 100, 300, 900), measured(ownName, 1, 41, 180, 900), measured(noopName, 32, 30, 1, 5000), measured(ownName, 32, 6, 1, 3000),
	}}
	r.judge()
	got := map[string]bool{}
	for _, b := range r.bars {
		got[b.What] = b.Held
	}
	want := map[string]bool{
		"CPU a check of the no-op's, c=32": true, "CPU a check of the no-op's, c=1": false,
		"added p50 of the no-op's, c=1": true, "p99 of the no-op's, c=32": true,
	}
	if len(got) != len(want) || !r.missed() {
		t.Errorf("%v", got)
	}
	for what, held := range want {
		if got[what] != held {
			t.Errorf("%s: held %v, want %v", what, got[what], held)
		}
	}
}
