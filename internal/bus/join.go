package bus

import (
	"context"
	"fmt"
	"time"

	"github.com/IBM/sarama"
)

// joined is what the coordinator said to a join; the leader then plans.
type joined struct {
	members map[string]sarama.ConsumerGroupMemberMetadata // of the leader only
}

// join enters the next generation, telling what this process holds.
func (m *member) join(ctx context.Context) error {
	if _, _, err := m.client.topic(ctx, m.cfg.Topic, time.Now().Add(-checkPartitions)); err != nil {
		return err
	}
	if err := m.connect(ctx); err != nil {
		return err
	}
	req, err := m.joinRequest()
	if err != nil {
		return err
	}
	var answer *sarama.JoinGroupResponse
	err = m.link.do(ctx, func(b *sarama.Broker) (err error) {
		answer, err = b.JoinGroup(req)
		return err
	})
	if err != nil {
		return err
	}
	m.beaten = time.Now()
	if answer.Err != sarama.ErrNoError {
		return answer.Err
	}
	m.id, m.generation = answer.MemberId, answer.GenerationId
	m.leads = answer.LeaderId == answer.MemberId
	m.joined = joined{}
	if m.leads {
		m.joined.members, err = answer.GetMembers()
	}
	return err
}

func (m *member) joinRequest() (*sarama.JoinGroupRequest, error) {
	req := sarama.NewJoinGroupRequest(sarama.MaxVersion)
	req.GroupId = m.cfg.Group
	req.MemberId = m.id
	req.GroupInstanceId = &m.cfg.Instance
	req.ProtocolType = "consumer"
	req.SessionTimeout = int32(m.cfg.Session / time.Millisecond)   //nolint:gosec // seconds
	req.RebalanceTimeout = int32(m.cfg.Session / time.Millisecond) //nolint:gosec // seconds
	meta := &sarama.ConsumerGroupMemberMetadata{Version: 2, Topics: []string{m.cfg.Topic}, GenerationID: m.generation}
	if held := m.owners.partitions(); len(held) > 0 {
		meta.OwnedPartitions = []*sarama.OwnedPartition{{Topic: m.cfg.Topic, Partitions: held}}
	}
	if p, ok := m.plan.(sarama.SubscriptionUserDataBalanceStrategy); ok {
		data, err := p.SubscriptionUserData(meta.Topics)
		if err != nil {
			return nil, err
		}
		meta.UserData = data
	}
	return req, req.AddGroupProtocolMetadata(m.plan.Name(), meta)
}

// sync hands in the plan, if this member leads, and returns the partitions that are its own.
func (m *member) sync(ctx context.Context) ([]int32, error) {
	protocol, name := "consumer", m.plan.Name()
	req := &sarama.SyncGroupRequest{Version: 5, GroupId: m.cfg.Group, MemberId: m.id, GenerationId: m.generation,
		GroupInstanceId: &m.cfg.Instance, ProtocolType: &protocol, ProtocolName: &name}
	if m.leads {
		if err := m.assign(ctx, req); err != nil {
			return nil, fmt.Errorf("plan the assignment: %w", err)
		}
	}
	var answer *sarama.SyncGroupResponse
	err := m.link.do(ctx, func(b *sarama.Broker) (err error) {
		answer, err = b.SyncGroup(req)
		return err
	})
	if err != nil {
		return nil, err
	}
	if answer.Err != sarama.ErrNoError {
		return nil, answer.Err
	}
	m.beaten = time.Now()
	if len(answer.MemberAssignment) == 0 {
		return nil, nil
	}
	mine, err := answer.GetMemberAssignment()
	if err != nil {
		return nil, fmt.Errorf("read the assignment: %w", err)
	}
	if p, ok := m.plan.(sarama.OnAssignmentBalanceStrategy); ok {
		p.OnAssignment(mine, m.generation)
	}
	return mine.Topics[m.cfg.Topic], nil
}

// assign plans for every member and puts the plan into req.
func (m *member) assign(ctx context.Context, req *sarama.SyncGroupRequest) error {
	n, err := m.client.Partitions(ctx, m.cfg.Topic)
	if err != nil {
		return err
	}
	m.parts, m.checked = int(n), time.Now()
	all := make([]int32, n)
	for i := range all {
		all[i] = int32(i) //nolint:gosec // below n
	}
	plan, err := m.plan.Plan(m.joined.members, map[string][]int32{m.cfg.Topic: all})
	if err != nil {
		return err
	}
	for id := range m.joined.members {
		if err := req.AddGroupAssignmentMember(id, &sarama.ConsumerGroupMemberAssignment{Topics: plan[id]}); err != nil {
			return err
		}
	}
	return nil
}
