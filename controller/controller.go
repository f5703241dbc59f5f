package controller

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"k8s.io/client-go/rest"

	"github.com/weirproxy/weir/controller/fleet"
	"github.com/weirproxy/weir/controller/publish"
	"github.com/weirproxy/weir/controller/webhook"
	"github.com/weirproxy/weir/internal/admin"
	"github.com/weirproxy/weir/internal/runner"
	"github.com/weirproxy/weir/internal/waits"
)

// Controller is one process of the program. Make it with New and run it once.
type Controller struct {
	cfg       Config
	namespace string
	rest      *rest.Config
	log       *zap.Logger
	admin     *admin.Server
	registry  *prometheus.Registry
	waits     *waits.Waits
	topic     *publish.Topic
	fleet     *fleet.Fleet
	cluster   cluster
	webhook   *webhook.Webhook // nil: no injection
	synced    atomic.Bool      // the caches are, of this session or one before
	tenure    tenure
	began     time.Time
}

// New checks the configuration and the files it names. It connects to nothing.
func New(cfg Config, logger *zap.Logger) (*Controller, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	keys, err := cfg.keys()
	if err != nil {
		return nil, err
	}
	c := &Controller{cfg: cfg, log: logger, admin: admin.New(cfg.Admin, logger), registry: prometheus.NewRegistry(), began: time.Now()}
	if c.namespace, err = cfg.namespace(); err != nil {
		return nil, err
	}
	if c.rest, err = cfg.rest(); err != nil {
		return nil, err
	}
	c.waits = newWaits(logger, c.registry)
	c.topic = publish.New(publish.Config{Name: cfg.Topics.Policies, Keys: keys, Log: logger.Named("policies"), Leads: c.tenure.leads})
	c.fleet = fleet.New(fleet.Config{Topic: cfg.Topics.Status, Fingerprint: keys.Fingerprint(), Log: logger.Named("status")})
	c.admin.Ready("controller", c.Ready)
	if cfg.Injection.Enabled {
		if c.webhook, err = c.injector(); err != nil {
			return nil, err
		}
		c.admin.Ready("webhook", c.webhook.Ready)
	}
	return c, nil
}

// Run works until ctx ends and then gives the lease back, within Config.Grace. Whatever it depends on may be away
// or come later. An error means that it cannot listen, or did not end in time.
func (c *Controller) Run(ctx context.Context) error {
	c.log.Info("controller starts")
	parts := []runner.Part{{Name: "kubernetes", Run: c.runKubernetes}, {Name: "kafka", Run: c.runKafka}}
	if c.cfg.Admin != (admin.Config{}) {
		parts = append(parts, runner.Part{Name: "admin", Run: c.admin.Run})
	}
	if c.cfg.Metrics.Address != "" {
		parts = append(parts, runner.Part{Name: "metrics", Run: c.runMetrics})
	}
	if c.webhook != nil {
		parts = append(parts, runner.Part{Name: "webhook", Run: c.webhook.Run})
	}
	if err := runner.Run(ctx, c.cfg.Grace, parts...); err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("controller: %w", err)
	}
	c.log.Info("controller ends")
	return nil
}

// Ready reports whether this replica serves, and why not or what is amiss. It serves once it knows the cluster:
// what the webhook answers needs nothing else, so that neither Kafka nor a kube-apiserver that is away for a
// while takes the webhook out of its Service.
func (c *Controller) Ready() (bool, []string) {
	reasons := c.waits.List()
	if !c.synced.Load() && len(reasons) == 0 {
		reasons = append(reasons, "the caches of Kubernetes objects are being filled")
	}
	return c.synced.Load(), reasons
}
