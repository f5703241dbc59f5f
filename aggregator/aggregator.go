// Package aggregator is weir-aggregator: it owns usage partitions with others of its kind, adds up what
// pods report, keeps the totals in Redis and tells every pod, tens of milliseconds later, what is left.
//
// The parts: partition (the state of one partition, pure), ingest (its shell), store (Redis), policies and
// status (what the topics of those names say), metrics. This package only assembles them.
package aggregator

import (
	"context"
	"errors"
	"fmt"

	"go.uber.org/zap"

	"github.com/weirproxy/weir/aggregator/ingest"
	"github.com/weirproxy/weir/aggregator/metrics"
	"github.com/weirproxy/weir/aggregator/store"
	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/internal/admin"
	"github.com/weirproxy/weir/internal/log"
	"github.com/weirproxy/weir/internal/runner"
	"github.com/weirproxy/weir/internal/waits"
)

// Aggregator is one process of the program. Make it with New and run it once.
type Aggregator struct {
	cfg     Config
	keys    wirev1.Keys
	log     *zap.Logger
	store   ingest.Store
	redis   *store.Redis // nil where Config.Store is given
	admin   *admin.Server
	metrics *metrics.Metrics
	waits   *waits.Waits
	core    coreHandle
}

// New checks the configuration and the files it names. It connects to nothing.
func New(cfg Config, logger *zap.Logger) (*Aggregator, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	keys, err := cfg.keys()
	if err != nil {
		return nil, err
	}
	a := &Aggregator{cfg: cfg, keys: keys, log: logger, store: cfg.Store, admin: admin.New(cfg.Admin, logger)}
	if a.store == nil {
		if a.redis, err = store.New(cfg.Redis); err != nil {
			return nil, err
		}
		a.store = a.redis
	}
	a.metrics = metrics.New(a.admin.Registry())
	a.waits = waits.New(logger, a.metrics.Waiting)
	a.admin.Ready("aggregator", a.readiness)
	a.debug()
	return a, nil
}

// Run works until ctx ends and then hands its partitions over, within Config.Grace. Whatever it depends on
// may be away or come later. An error means that it cannot listen, or did not end in time.
func (a *Aggregator) Run(ctx context.Context) error {
	a.log.Info("aggregator starts", zap.String(log.Instance, a.cfg.Instance))
	parts := []runner.Part{{Name: "core", Run: a.runCore}}
	if a.cfg.Admin != (admin.Config{}) {
		parts = append(parts, runner.Part{Name: "admin", Run: a.admin.Run})
	}
	err := runner.Run(ctx, a.cfg.Grace, parts...)
	if a.redis != nil {
		a.redis.Close()
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("aggregator: %w", err)
	}
	a.log.Info("aggregator ends")
	return nil
}

// Registry and readiness are served by the admin server; tests and the demo ask here.

// Ready reports whether this aggregator takes part, and why not or what is amiss.
func (a *Aggregator) Ready() (bool, []string) { return a.readiness() }
