package bus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/IBM/sarama"
)

const (
	noGeneration = -1
	// checkPartitions is how often the leader looks whether the topic has grown.
	checkPartitions = 10 * time.Second
)

// errRebalance: the group is to join anew.
var errRebalance = errors.New("rebalance")

// member speaks the group protocol over one connection to the coordinator. One goroutine uses it.
type member struct {
	client *Client
	cfg    GroupConfig
	owners *owners
	plan   sarama.BalanceStrategy
	member func() // told when this process is a member

	link       *link
	id         string
	generation int32
	leads      bool
	joined     joined
	parts      int       // of the topic, as planned
	beaten     time.Time // last sign that the coordinator holds us for a member
	checked    time.Time
	worked     bool
}

// session is a member until something fails. A lost connection does not end the membership: the
// next session goes on with the same generation, unless the session time-out has passed meanwhile.
func (m *member) session(ctx context.Context) error {
	m.worked = false
	bounded, cancel := m.bounded(ctx)
	err := m.connect(bounded)
	if err == nil && m.generation != noGeneration {
		err = m.beat(bounded)
	}
	cancel()
	for ctx.Err() == nil {
		if err == nil && m.generation != noGeneration {
			m.worked = true
			m.member()
			err = m.hold(ctx)
		}
		if err != nil && !errors.Is(err, errRebalance) {
			return m.failed(err)
		}
		err = m.rejoin(ctx)
	}
	return ctx.Err()
}

// bounded ends with the session, while there is one: partitions must be let go by then.
func (m *member) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if m.generation == noGeneration {
		return context.WithCancel(ctx)
	}
	return context.WithDeadlineCause(ctx, m.beaten.Add(m.cfg.Session), errSession)
}

var errSession = errors.New("the group's coordinator has not answered for a whole session")

// failed sorts an error: what the coordinator no longer grants is let go; a lost connection is kept
// apart from a lost membership until the session is over.
func (m *member) failed(err error) error {
	m.drop()
	refused := errors.Is(err, sarama.ErrUnknownMemberId) || errors.Is(err, sarama.ErrIllegalGeneration) ||
		errors.Is(err, sarama.ErrFencedInstancedId)
	if refused {
		m.id = ""
	}
	if refused || time.Since(m.beaten) >= m.cfg.Session {
		m.generation = noGeneration
		m.owners.set(nil)
	}
	return err
}

// untilLost cuts a pause short at the end of the session.
func (m *member) untilLost(d time.Duration) time.Duration {
	if m.generation == noGeneration {
		return d
	}
	return min(d, max(time.Until(m.beaten.Add(m.cfg.Session)), time.Millisecond))
}

func (m *member) connect(ctx context.Context) error {
	if m.link != nil {
		return nil
	}
	var found *sarama.FindCoordinatorResponse
	err := m.client.any(ctx, func(b *sarama.Broker) (err error) {
		found, err = b.FindCoordinator(&sarama.FindCoordinatorRequest{Version: 2, CoordinatorKey: m.cfg.Group,
			CoordinatorType: sarama.CoordinatorGroup})
		if err == nil && found.Err != sarama.ErrNoError {
			err = found.Err
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("find the coordinator of group %s: %w", m.cfg.Group, err)
	}
	// A join is answered when the whole group has joined.
	m.link, err = m.client.open(ctx, found.Coordinator.Addr(), 2*m.cfg.Session+m.client.cfg.RequestTimeout)
	return err
}

func (m *member) drop() {
	m.link.close()
	m.link = nil
}

// rejoin joins until no partition had to be let go: what one member lets go passes on in the next round.
func (m *member) rejoin(ctx context.Context) error {
	for {
		bounded, cancel := context.WithTimeoutCause(ctx, 2*m.cfg.Session, errSession)
		err := m.join(bounded)
		if err == nil {
			var mine []int32
			if mine, err = m.sync(bounded); err == nil {
				lost := m.owners.set(mine)
				m.cfg.Assigned(m.owners.partitions())
				cancel()
				if lost {
					continue
				}
				return nil
			}
		}
		cancel()
		if !errors.Is(err, sarama.ErrRebalanceInProgress) || !pause(ctx, m.cfg.Heartbeat/2) {
			return fmt.Errorf("join group %s: %w", m.cfg.Group, err)
		}
	}
}

// hold sends heartbeats until the group is to join anew or fails.
func (m *member) hold(ctx context.Context) error {
	tick := time.NewTicker(m.cfg.Heartbeat)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		bounded, cancel := m.bounded(ctx)
		err := m.beat(bounded)
		if err == nil {
			err = m.grown(bounded)
		}
		cancel()
		if err != nil {
			return err
		}
	}
}

func (m *member) beat(ctx context.Context) error {
	req := &sarama.HeartbeatRequest{Version: 4, GroupId: m.cfg.Group, MemberId: m.id,
		GenerationId: m.generation, GroupInstanceId: &m.cfg.Instance}
	var answer *sarama.HeartbeatResponse
	sent := time.Now()
	err := m.link.do(ctx, func(b *sarama.Broker) (err error) {
		answer, err = b.Heartbeat(req)
		return err
	})
	if err != nil {
		return fmt.Errorf("heartbeat to group %s: %w", m.cfg.Group, err)
	}
	switch answer.Err {
	case sarama.ErrNoError:
		m.beaten = sent
		return nil
	case sarama.ErrRebalanceInProgress:
		m.beaten = sent
		return errRebalance
	}
	return fmt.Errorf("heartbeat to group %s: %w", m.cfg.Group, answer.Err)
}

// grown has the leader plan anew where the topic has another number of partitions.
func (m *member) grown(ctx context.Context) error {
	if !m.leads || time.Since(m.checked) < checkPartitions {
		return nil
	}
	m.checked = time.Now()
	n, err := m.client.Partitions(ctx, m.cfg.Topic)
	if err == nil && int(n) != m.parts {
		return errRebalance
	}
	return nil // that the topic cannot be asked for is no reason to let go
}

// longestLeave bounds the good-bye: a coordinator that is frozen must not hold up the end of the program.
const longestLeave = 1500 * time.Millisecond

// leave gives up the membership, so that the partitions pass on at once.
func (m *member) leave() {
	if m.id == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), min(m.client.cfg.RequestTimeout/2, longestLeave))
	defer cancel()
	// The connection was broken with the context; the coordinator is another short one.
	m.drop()
	if m.connect(ctx) != nil {
		return
	}
	_ = m.link.do(ctx, func(b *sarama.Broker) error {
		_, err := b.LeaveGroup(&sarama.LeaveGroupRequest{Version: 4, GroupId: m.cfg.Group,
			Members: []sarama.MemberIdentity{{MemberId: m.id, GroupInstanceId: &m.cfg.Instance}}})
		return err
	})
}
