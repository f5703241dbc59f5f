package bus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/IBM/sarama"
)

// GroupConfig names a member of a consumer group. Group, Topic and Instance are required.
type GroupConfig struct {
	// Group is the group's name; Topic the one whose partitions are shared out.
	Group, Topic string
	// Instance is the static member's id: the same after a restart, another for each process.
	Instance string
	// Leave: on stop the partitions pass on at once. Otherwise they stay this instance's for the
	// session time-out, for a quick restart.
	Leave bool
	// Session after which a silent member loses its partitions. Default: 6 s, which is also the
	// least that brokers allow by default.
	Session time.Duration
	// Heartbeat period: how soon a member hears of a rebalance. Default: 100 ms.
	Heartbeat time.Duration
	// StopTimeout bounds the wait for own to return, at most half a session. Default: 3 s.
	StopTimeout time.Duration
	// State gets the reason why this process is no member, "" when it is; only on change.
	State func(reason string)
	// Assigned gets the partitions held, sorted, after each rebalance.
	Assigned func(partitions []int32)
	// Ended is told when own returned although its partition is still held, and is run again after
	// a pause; and when own did not return within StopTimeout (err is ErrSlowStop).
	Ended func(partition int32, err error)
}

// ErrSlowStop says that own did not return within StopTimeout of its context's end.
var ErrSlowStop = errors.New("the partition's owner did not stop in time")

func (c GroupConfig) withDefaults() GroupConfig {
	c.Session = orElse(c.Session, 6*time.Second)
	c.Heartbeat = orElse(c.Heartbeat, 100*time.Millisecond)
	c.StopTimeout = min(orElse(c.StopTimeout, 3*time.Second), c.Session/2)
	c.State = orDo(c.State)
	c.Assigned = orDo(c.Assigned)
	c.Ended = orDo2(c.Ended)
	return c
}

// Group says which partitions are this process's own, and reads nothing. It is a static member of a
// consumer group with cooperative-sticky assignment: a rebalance touches only the partitions that
// move, and those pass on once their old owner has stopped.
type Group struct {
	client *Client
	cfg    GroupConfig
	said   states
}

// NewGroup returns a member that joins once Run runs.
func NewGroup(c *Client, cfg GroupConfig) *Group {
	cfg = cfg.withDefaults()
	return &Group{client: c, cfg: cfg, said: states{f: cfg.State}}
}

// Run holds partitions until ctx ends. For each partition held, own runs on a goroutine until its
// context ends, which it does when the partition moves on, when the session is lost or at the end;
// it is never run twice at a time for a partition. Where it returns earlier it is run again after a
// jittered pause. Errors of Kafka never end Run: it joins again. Once ctx ends, Run waits for every
// own within StopTimeout, leaves the group if so configured, and returns nil.
func (g *Group) Run(ctx context.Context, own func(ctx context.Context, partition int32) error) error {
	o := newOwners(g.cfg, g.client.cfg, own)
	m := &member{client: g.client, cfg: g.cfg, owners: o, plan: sarama.NewBalanceStrategyCooperativeSticky(),
		generation: noGeneration, member: func() { g.said.set(g, reason{}) }}
	defer m.drop()
	wait := g.client.backoff()
	for ctx.Err() == nil {
		err := m.session(ctx)
		if ctx.Err() != nil {
			break
		}
		if m.worked {
			wait.reset()
		}
		why, d := reasonOf(err), wait.step()
		if errors.Is(err, sarama.ErrFencedInstancedId) {
			why.text = fmt.Sprintf("another process runs as instance %q of group %s: give each its own", g.cfg.Instance, g.cfg.Group)
			d = g.cfg.Session
		}
		g.said.set(g, why)
		pause(ctx, m.untilLost(d))
	}
	o.set(nil)
	if g.cfg.Leave {
		m.leave()
	}
	return nil
}
