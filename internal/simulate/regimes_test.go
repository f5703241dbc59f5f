package simulate_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirproxy/weir/internal/simulate"
)

func TestRegimes(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(scenarios, "regimes", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, f := range files {
		t.Run(strings.TrimSuffix(filepath.Base(f), ".yaml"), func(t *testing.T) {
			t.Parallel()
			s := read(t, f)
			o := simulate.Options{Workers: 1}
			if !long() {
				o.Runs = min(s.Runs, 2)
			}
			t.Log(s.Title + " | " + line(run(t, s, o)))
		})
	}
}
