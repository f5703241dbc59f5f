package live

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/weirproxy/weir/test/obs/chart"
	"github.com/weirproxy/weir/test/parts"
	"github.com/weirproxy/weir/test/world"
)

const files = "../../../charts/weir/files"

// silent are panels that are empty while nothing is wrong, each of them for one of its queries or more.
var silent = []string{
	"Alerts that fire", "Would be refused (shadow)", "Pods that keep an older version", "Decisions ignored",
	"Pods by what degrades them", "Failures that are retried", "Waiting", "Usage skipped and lost",
}

// slow are alerts whose condition holds for moments after the start, or on a machine that has other things to do.
var slow = []string{"WeirDecisionsLate", "WeirUsageLate", "WeirLocalShare", "WeirOverAdmission"}

// A row of the dashboard that needs Kubernetes, which is not here.
const elsewhere = "Controller and injector"

// What an operator sees of a healthy installation at three times its limit, and what when all aggregators are killed.
func TestLiveOperatorsSeeWhatHappens(t *testing.T) {
	w := world.Settled(t, 3, 2, world.Policy(world.EachClient(100, "")))
	p := startPrometheus(t, w)
	load := w.Start(0, world.Uneven("acme", 300)...)

	panels, _, err := chart.Dashboard(files)
	if err != nil {
		t.Fatal(err)
	}
	for _, panel := range panels {
		if panel.Row == elsewhere || slices.Contains(silent, panel.Title) {
			continue
		}
		for _, q := range panel.Queries {
			parts.Eventually(t, world.Patience, panel.Title, func() error {
				n, err := p.count(q.PromQL("10s"))
				if err == nil && n == 0 {
					err = errors.New("no series")
				}
				if err != nil {
					return fmt.Errorf("%s: %w", q.Expr, err)
				}
				return nil
			})
		}
	}
	// The figures of docs/operate.md.
	for _, selector := range []string{
		`{pod="orders-0"}`, `{pod="orders-0", __name__=~"weir_.+"}`, `{pod="orders-0", partition!=""}`, `{pod="orders-0", limit!=""}`,
		`{pod="aggregator-0"}`, `{pod="aggregator-0", __name__=~"weir_.+"}`, `{job="weir-aggregator", partition="0"}`, `{job="weir-aggregator", limit!=""}`,
	} {
		if n, err := p.count(selector); err == nil {
			t.Logf("%s: %d series", selector, n)
		}
	}
	for _, name := range p.pending(t) {
		if !slices.Contains(slow, name) {
			t.Errorf("%s is pending, though nothing is wrong", name)
		}
	}

	for _, o := range w.Owners {
		o.Process.Kill()
	}
	for _, name := range []string{"WeirAggregatorsDown", "WeirLocalShare"} {
		parts.Eventually(t, world.Patience, name, func() error {
			if on := p.pending(t); !slices.Contains(on, name) {
				return fmt.Errorf("pending: %v", on)
			}
			return nil
		})
	}
	load.Stop()
	if answers := load.Wait().Total(); answers.Errors > 0 {
		t.Errorf("%d requests failed, which no alert says", answers.Errors)
	}
}
