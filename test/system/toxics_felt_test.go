package system

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/weirproxy/weir/test/load"
	"github.com/weirproxy/weir/test/parts"
	"github.com/weirproxy/weir/test/world"
)

// trouble is a fault under way: what a scenario acts on, and how it sees that the fault is in force.
type trouble struct {
	w      *world.World
	run    *load.Run
	length time.Duration
	killed time.Duration // since the run's start, of a pod; 0: none was
	before map[string]float64
}

// last lets the load run for the fault's length.
func (f *trouble) last() { phase(f.run, f.length) }

// grows waits until a metric, summed over the programs that answer, has grown: the fault is felt.
func (f *trouble) grows(name string, by float64) {
	f.w.T.Helper()
	parts.Eventually(f.w.T, world.Patience, fmt.Sprintf("%s grows by %v", name, by), func() error {
		if n := sum(f.w, name) - f.before[name]; n < by {
			return fmt.Errorf("by %v", n)
		}
		return nil
	})
}

// felt are the metrics that faults show in.
var felt = []string{
	"weir_sidecar_reports_coalesced_total", "weir_sidecar_reports_failed_total", "weir_sidecar_read_errors_total",
	"weir_aggregator_store_errors_total",
}

func begin(w *world.World, run *load.Run, length time.Duration) *trouble {
	f := &trouble{w: w, run: run, length: length, before: map[string]float64{}}
	for _, name := range felt {
		f.before[name] = sum(w, name)
	}
	return f
}

func sum(w *world.World, metric string) (sum float64) {
	var admins []string
	for _, p := range w.Pods {
		admins = append(admins, p.Admin)
	}
	for _, o := range w.Owners {
		admins = append(admins, o.Admin)
	}
	for _, a := range admins {
		if _, _, err := world.Get("http://" + a + "/readyz"); err == nil { // else it was killed
			sum += w.Metric(a, metric)
		}
	}
	return sum
}

var evalshaCalls = regexp.MustCompile(`cmdstat_evalsha:calls=(\d+)`)

// flushes is how many chunks of flushes Redis has been sent.
func flushes(w *world.World) int {
	w.T.Helper()
	info, err := w.Redis.Do("INFO", "commandstats")
	w.Must(err)
	found := evalshaCalls.FindStringSubmatch(info)
	if found == nil {
		w.T.Fatalf("Redis counts no scripts: %s", strings.TrimSpace(info))
	}
	n, err := strconv.Atoi(found[1])
	w.Must(err)
	return n
}
