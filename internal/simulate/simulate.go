package simulate

import (
	"context"
	"runtime"
	"sync"
	"time"

	"github.com/weirproxy/weir/internal/simulate/measure"
	"github.com/weirproxy/weir/internal/simulate/scenario"
)

// Options of RunAll; zero values are the scenario's own.
type Options struct {
	Runs int
	Seed uint64
	// Workers is how many runs go on at the same time; 0: one a processor.
	Workers int
}

// RunAll runs a scenario under as many seeds as it has runs, counting up from the first. The result does not depend
// on Workers. It fails where the scenario's policy cannot be used, or when ctx ends.
func RunAll(ctx context.Context, s *scenario.Scenario, o Options) ([]*measure.Run, error) {
	if o.Runs <= 0 {
		o.Runs = max(s.Runs, 1)
	}
	if o.Seed == 0 {
		o.Seed = s.Seed
	}
	if o.Workers <= 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	runs, errs := make([]*measure.Run, o.Runs), make([]error, o.Runs)
	pool := newCellPool()
	next := make(chan int)
	var workers sync.WaitGroup
	for range min(o.Workers, o.Runs) {
		workers.Go(func() {
			for i := range next {
				if runs[i], errs[i] = runWith(ctx, s, o.Seed+uint64(i), pool); errs[i] != nil { //nolint:gosec // not negative
					cancel()
				}
			}
		})
	}
	for i := range o.Runs {
		next <- i
	}
	close(next)
	workers.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return runs, nil
}

// Run runs a scenario once.
func Run(ctx context.Context, s *scenario.Scenario, seed uint64) (*measure.Run, error) {
	return runWith(ctx, s, seed, newCellPool())
}

// slice is how much virtual time passes between looks at the context.
const slice = time.Second / 4

func runWith(ctx context.Context, s *scenario.Scenario, seed uint64, pool *cellPool) (*measure.Run, error) {
	lent := pool.lend()
	defer lent.giveBack()
	w, err := newWorld(s, seed, lent)
	if err != nil {
		return nil, err
	}
	for at := time.Duration(0); at < s.Duration; at += slice {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		w.run(min(at+slice, s.Duration))
	}
	if w.err != nil {
		return nil, w.err
	}
	return w.result(seed), nil
}

func (w *world) result(seed uint64) *measure.Run {
	seconds := w.s.Duration.Seconds()
	r := &measure.Run{
		Seed: seed, Requests: w.tally.requests,
		UsageMessages: float64(w.tally.usage) / seconds, UsageEntries: float64(w.entries()) / seconds,
		DecisionRecords: float64(w.tally.records) / seconds, DecisionBatches: float64(w.tally.batches) / seconds,
	}
	for _, j := range w.judges.rates {
		r.Rates = append(r.Rates, j.meter.Result())
	}
	for _, src := range w.traffic {
		r.Sources = append(r.Sources, src.tally)
	}
	return r
}

// entries is how many entries the reports had: owners count them, of what they read.
func (w *world) entries() float64 {
	var entries, messages float64
	for _, o := range w.owners {
		if o.p != nil {
			entries += float64(o.p.Stats().Entries)
			messages += float64(o.p.Stats().Messages)
		}
	}
	if messages == 0 {
		return 0
	}
	return float64(w.tally.usage) * entries / messages
}
