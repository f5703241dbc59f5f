package waits

import (
	"fmt"
	"slices"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/weirproxy/weir/internal/log"
)

// What a part waits for is in readiness, in the metric, and one log line a change (DESIGN 6).
func TestAWaitIsSaidOnceInEachPlace(t *testing.T) {
	core, lines := observer.New(zap.InfoLevel)
	var metric []string
	w := New(zap.New(core), func(part string, is bool) { metric = append(metric, fmt.Sprint(part, " ", is)) })
	w.Set("policies", "")
	for range 3 {
		w.Set("policies", "no topic")
	}
	w.Note("kafka", "no broker")
	if got := w.List(); !slices.Equal(got, []string{"kafka: no broker", "policies: no topic"}) {
		t.Errorf("readiness says %q", got)
	}
	w.Set("policies", "")
	w.Note("kafka", "")
	if got := w.List(); len(got) != 0 {
		t.Errorf("it still waits for %q", got)
	}
	if want := []string{"policies true", "kafka true", "policies false", "kafka false"}; !slices.Equal(metric, want) {
		t.Errorf("the metric was set %q, want %q", metric, want)
	}
	all := lines.All()
	if len(all) != 2 || all[0].ContextMap()[log.Reason] != "no topic" || all[1].Message != "waits no more" {
		t.Errorf("logged %+v", all)
	}
}
