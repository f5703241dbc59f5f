package bus

import (
	"context"
	"fmt"
	"time"

	"github.com/IBM/sarama"
)

// placer finds where to start on a partition.
type placer struct {
	link      *link
	topic     string
	partition int32
}

func (p placer) newest(ctx context.Context) (int64, error) {
	return p.link.offset(ctx, p.topic, p.partition, sarama.OffsetNewest)
}

// start returns the offset that from means, where end is the partition's end.
func (p placer) start(ctx context.Context, from From, end int64) (int64, error) {
	switch {
	case from.Set:
		return from.Offset, nil
	case from.Newest:
		return end, nil
	case from.Age > 0:
		return p.byAge(ctx, from.Age, end)
	case !from.At.IsZero():
		return p.link.offsetAt(ctx, p.topic, p.partition, from.At)
	}
	return p.link.offset(ctx, p.topic, p.partition, sarama.OffsetOldest)
}

// byAge counts back from the time of the newest record, not from a clock of ours.
func (p placer) byAge(ctx context.Context, age time.Duration, end int64) (int64, error) {
	oldest, err := p.link.offset(ctx, p.topic, p.partition, sarama.OffsetOldest)
	if err != nil || oldest >= end {
		return end, err
	}
	f := &fetcher{link: p.link, topic: p.topic, partition: p.partition, wait: time.Millisecond, bytes: 1 << 20}
	last, err := f.fetch(ctx, end-1)
	if err != nil {
		return 0, fmt.Errorf("read the newest record: %w", err)
	}
	if len(last.messages) == 0 {
		return oldest, nil
	}
	return p.link.offsetAt(ctx, p.topic, p.partition, last.messages[len(last.messages)-1].Appended.Add(-age))
}

// topicID asks the link's broker for a topic's id.
func (l *link) topicID(ctx context.Context, topic string) (TopicID, error) {
	var answer *sarama.MetadataResponse
	err := l.do(ctx, func(b *sarama.Broker) (err error) {
		answer, err = b.GetMetadata(metadataRequest(topic))
		return err
	})
	if err != nil {
		return TopicID{}, fmt.Errorf("ask for topic %s: %w", topic, err)
	}
	for _, t := range answer.Topics {
		if t.Name == topic && t.Err == sarama.ErrNoError {
			return TopicID(t.Uuid), nil
		}
	}
	return TopicID{}, fmt.Errorf("topic %s %w", topic, ErrNoTopic)
}

func (c *Client) brokerAddr(id int32) (string, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	addr, known := c.view.brokers[id]
	return addr, known
}
