package controller

import (
	"context"
	"time"

	"github.com/weirproxy/weir/internal/bus"
	"github.com/weirproxy/weir/internal/runner"
)

// runKafka connects and mirrors the topics until ctx ends. It is apart from Kubernetes: mirrors outlive a lost
// lease.
func (c *Controller) runKafka(ctx context.Context) error {
	cfg := c.cfg.Kafka
	cfg.State = func(reason string) { c.waits.Set(waitsKafka, reason) }
	client, err := bus.Dial(ctx, cfg, c.log)
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	defer func() { _ = client.Close() }()
	return runner.Run(ctx, 0,
		runner.Part{Name: "policies", Run: func(ctx context.Context) error { return c.topic.Run(ctx, client) }},
		runner.Part{Name: "status", Run: func(ctx context.Context) error { return c.fleet.Run(ctx, client) }},
		runner.Part{Name: "waits", Run: c.watchTopics},
	)
}

// watchTopics tells what the mirrors wait for.
func (c *Controller) watchTopics(ctx context.Context) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		c.waits.Set(waitsPolicies, c.topic.Waiting())
		c.waits.Set(waitsStatus, c.fleet.Waiting())
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}
