package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

func TestGeneratedFilesAreUpToDate(t *testing.T) {
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	files, err := generate(root)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join(root, name))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is out of date (%v): run go generate ./api/config", name, err)
		}
	}
}

func TestAFieldWithoutACommentIsRefused(t *testing.T) {
	if _, err := reference(map[string]string{}); err == nil {
		t.Error("no error for settings without documentation")
	}
}

// Every metric has a row with its help text, so that none is added in silence.
func TestEveryMetricIsInTheReference(t *testing.T) {
	page, err := metricsPage()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| `weir_sidecar_checks_total` | counter | `outcome` | Checks by outcome. |",
		"| `weir_sidecar_check_seconds` | histogram |  | Duration of a check",
		"| `weir_sidecar_slots` | gauge |  | Counters held. |",
		"| `weir_sidecar_slots_full_total` | counter |  |",
		"| `weir_aggregator_usage_skipped_total` | counter | `partition`, `reason` |",
		"| `weir_controller_waiting` | gauge | `part` |",
		"| `weir_controller_injection_reviews_total` | counter | `outcome` |",
		"| `weir_aggregator_counters_hot` | gauge | `partition` |",
	} {
		if !bytes.Contains(page, []byte(want)) {
			t.Errorf("there is no row %s", want)
		}
	}
	if rows := bytes.Count(page, []byte("| `weir_")); rows < 50 {
		t.Errorf("%d rows", rows)
	}
}
