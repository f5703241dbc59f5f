package aggregator

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/weirproxy/weir/aggregator/ingest"
	"github.com/weirproxy/weir/aggregator/partition"
	"github.com/weirproxy/weir/aggregator/policies"
	"github.com/weirproxy/weir/aggregator/status"
	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/internal/bus"
	"github.com/weirproxy/weir/internal/log"
	"github.com/weirproxy/weir/internal/policytopic"
)

// core is all that needs Kafka.
type core struct {
	*Aggregator
	client   *bus.Client
	writer   *bus.Writer
	policies *policies.Watcher
	status   *status.Watcher
	files    *policies.Directory // nil: no directory is given
	owner    *ingest.Owner
	count    atomic.Int32 // of partitions
}

// coreHandle is how the admin server reaches a core that may not be there yet.
type coreHandle struct {
	mu   sync.Mutex
	core *core
}

func (h *coreHandle) set(c *core) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.core = c
}

func (h *coreHandle) get() *core {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.core
}

// runCore connects, reads policies and status, and holds partitions until ctx ends. What partitions need
// for their handover ends after them.
func (a *Aggregator) runCore(ctx context.Context) error {
	cfg := a.cfg.Kafka
	cfg.State = func(reason string) { a.waits.Note("kafka", reason) }
	client, err := bus.Dial(ctx, cfg, a.log)
	if err != nil {
		return unlessEnded(ctx, err)
	}
	defer client.Close()
	c := a.assemble(client)
	if a.cfg.Policies != "" {
		c.files = &policies.Directory{
			Dir: a.cfg.Policies, Topic: a.cfg.Topics.Policies, Keys: a.keys, Watcher: c.policies, Writer: c.writer,
			Owner0: c.owner0, Log: a.log.Named("policies"),
		}
	}
	a.core.set(c)
	defer a.core.set(nil)

	outer, stop := context.WithCancel(context.WithoutCancel(ctx))
	var parts sync.WaitGroup
	for _, run := range []func(context.Context) error{c.writer.Run, c.policies.Run, c.status.Run} {
		parts.Go(func() { _ = run(outer) }) // they end with outer alone
	}
	defer parts.Wait()
	defer stop()
	if c.files != nil {
		parts.Go(func() { _ = c.files.Run(ctx) })
	}
	if err := c.prepare(ctx); err != nil {
		return unlessEnded(ctx, err)
	}
	return c.hold(ctx)
}

// unlessEnded drops an error that only says that ctx ended.
func unlessEnded(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	return nil
}

func (a *Aggregator) assemble(client *bus.Client) *core {
	t := a.cfg.Topics
	c := &core{Aggregator: a, client: client}
	c.writer = bus.NewWriter(client, bus.WriterConfig{
		// An acknowledgement may come a moment before its place is free again.
		Depth: map[string]int{t.Usage: 2, t.Decisions: 2, t.Policies: 2, t.Status: 256},
		State: func(reason string) { a.waits.Set("producing", reason) },
		// It ends after the partitions' handovers, which waited for what they sent.
		DrainTimeout: 500 * time.Millisecond,
	})
	c.policies = policies.NewWatcher(policies.WatcherConfig{
		Client: client, Topic: t.Policies, Log: a.log.Named("policies"),
		State:   func(reason string) { a.waits.Set("policies", reason) },
		Refused: func(error) { a.metrics.PoliciesRefused.Inc() },
	})
	c.status = status.NewWatcher(status.Config{
		Client: client, Topic: t.Status, Fingerprint: a.keys.Fingerprint(), Owner0: c.owner0,
		Tombstone: func(pod string) {
			if c.writer.Send(t.Status, 0, []byte(pod), nil, func(bus.Ack) {}) == nil {
				a.metrics.Tombstones.Inc()
			}
		},
		State: func(reason string) { a.waits.Set("status", reason) },
	})
	c.owner = ingest.NewOwner(ingest.Config{
		Client: client, Writer: c.writer, Store: a.store, Topics: t, Keys: a.keys, Instance: a.cfg.Instance,
		Partitions: c.count.Load,
		Policies:   c.policies.Current, Live: c.status.Live,
		Observer: a.metrics, Log: a.log.Named("partition"),
		Tuning: partition.Config{Flush: a.cfg.Flush, HotTick: a.cfg.Tick, MaxCounters: a.cfg.MaxCountersPerTarget},
		// Less than the half session after which the group waits no longer.
		HandoverTimeout: min(longestHandover, a.cfg.Session/3),
	})
	return c
}

// longestHandover, the good-bye to the group and the writer's end are together within the default Grace.
const longestHandover = 2 * time.Second

func (c *core) owner0() bool { return c.owner.Holds(0) }

// installationAgain is how often an installation that this program does not fit is looked at again.
const installationAgain = 2 * time.Second

// prepare waits for policies and status to be read and for the installation to fit.
func (c *core) prepare(ctx context.Context) error {
	for _, ready := range []<-chan struct{}{c.policies.Ready(), c.status.Ready()} {
		select {
		case <-ready:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	said := ""
	for {
		err := c.install(ctx)
		if err == nil {
			c.waits.Note("installation", "")
			return nil
		}
		c.waits.Note("installation", err.Error())
		if said != err.Error() && ctx.Err() == nil {
			said = err.Error()
			c.log.Error("cannot take part", zap.Error(err))
		}
		t := time.NewTimer(installationAgain)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return ctx.Err()
		}
	}
}

// install checks the installation's record, and writes it where there is none or topics were made anew.
func (c *core) install(ctx context.Context) error {
	have, err := c.installation(ctx)
	if err != nil {
		return err
	}
	write, err := policytopic.CheckInstallation(c.policies.Installation(), have)
	if err != nil {
		return err
	}
	c.count.Store(int32(have.Partitions)) //nolint:gosec // Kafka's own bound
	if write == nil {
		return nil
	}
	c.log.Info("writing the installation's record", zap.Uint32(log.Count, write.Partitions))
	return policytopic.PublishInstallation(ctx, c.writer, c.cfg.Topics.Policies, write)
}

func (c *core) installation(ctx context.Context) (*wirev1.Installation, error) {
	t := c.cfg.Topics
	usage, err := c.client.TopicID(ctx, t.Usage)
	if err != nil {
		return nil, err
	}
	decisions, err := c.client.TopicID(ctx, t.Decisions)
	if err != nil {
		return nil, err
	}
	n, err := c.client.Partitions(ctx, t.Usage)
	if err != nil {
		return nil, err
	}
	m, err := c.client.Partitions(ctx, t.Decisions)
	if err != nil {
		return nil, err
	}
	if n != m {
		return nil, fmt.Errorf("%s has %d partitions and %s has %d; make both with the same number (weir-aggregator topics ensure)",
			t.Usage, n, t.Decisions, m)
	}
	return &wirev1.Installation{
		Partitions: uint32(n), UsageTopicId: usage[:], DecisionsTopicId: decisions[:], //nolint:gosec // not negative
		KeyFingerprint: c.keys.Fingerprint(),
	}, nil
}

// hold takes part in the group.
func (c *core) hold(ctx context.Context) error {
	c.waits.Set("group", "joining the consumer group")
	group := bus.NewGroup(c.client, bus.GroupConfig{
		Group: c.cfg.Group, Topic: c.cfg.Topics.Usage, Instance: c.cfg.Instance, Leave: c.cfg.Handover == Leave,
		Session: c.cfg.Session,
		State:   func(reason string) { c.waits.Set("group", reason) },
		Assigned: func(partitions []int32) {
			c.waits.Set("group", "")
			c.log.Info("partitions assigned", zap.Int32s("partitions", partitions))
		},
		Ended: func(p int32, err error) {
			c.log.Warn("partition ended", zap.Int32(log.Partition, p), zap.Error(err))
		},
	})
	watchCtx, stop := context.WithCancel(ctx)
	var watching sync.WaitGroup
	watching.Go(func() { c.watchInstallation(watchCtx) })
	defer watching.Wait()
	defer stop()
	return group.Run(ctx, c.owner.Own)
}

// watchInstallation keeps the installation's record true where topics are made anew; the owner of
// partition 0 writes it.
func (c *core) watchInstallation(ctx context.Context) {
	tick := time.NewTicker(installationAgain)
	defer tick.Stop()
	failing := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if !c.owner0() {
			continue
		}
		err := c.install(ctx)
		if err != nil && !failing && ctx.Err() == nil {
			c.log.Warn("the installation's record cannot be kept", zap.Error(err))
		}
		failing = err != nil
	}
}
