package bus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/IBM/sarama"
)

// Oldest returns the offset of the oldest record retained.
func (c *Client) Oldest(ctx context.Context, topic string, partition int32) (int64, error) {
	return c.offset(ctx, topic, partition, sarama.OffsetOldest)
}

// Newest returns the offset that the next record will get.
func (c *Client) Newest(ctx context.Context, topic string, partition int32) (int64, error) {
	return c.offset(ctx, topic, partition, sarama.OffsetNewest)
}

// OffsetAt returns the offset of the first record appended at or after t; Newest where there is none.
func (c *Client) OffsetAt(ctx context.Context, topic string, partition int32, t time.Time) (int64, error) {
	l, err := c.leaderLink(ctx, topic, partition, c.cfg.RequestTimeout)
	if err != nil {
		return 0, err
	}
	defer l.close()
	return l.offsetAt(ctx, topic, partition, t)
}

func (c *Client) offset(ctx context.Context, topic string, partition int32, at int64) (int64, error) {
	l, err := c.leaderLink(ctx, topic, partition, c.cfg.RequestTimeout)
	if err != nil {
		return 0, err
	}
	defer l.close()
	return l.offset(ctx, topic, partition, at)
}

// leaderLink connects to a partition's leader, asking anew who it is.
func (c *Client) leaderLink(ctx context.Context, topic string, partition int32, read time.Duration) (*link, error) {
	addr, _, err := c.leader(ctx, topic, partition, time.Now())
	if err != nil {
		return nil, err
	}
	return c.open(ctx, addr, read)
}

func (l *link) offsetAt(ctx context.Context, topic string, partition int32, t time.Time) (int64, error) {
	o, err := l.offset(ctx, topic, partition, t.UnixMilli())
	if err != nil || o >= 0 {
		return o, err
	}
	return l.offset(ctx, topic, partition, sarama.OffsetNewest)
}

// offset asks for an offset by Unix ms, or one of Sarama's two names. -1: no record is so new.
func (l *link) offset(ctx context.Context, topic string, partition int32, at int64) (int64, error) {
	req := sarama.NewOffsetRequest(sarama.MaxVersion)
	req.AddBlock(topic, partition, at, 1)
	var answer *sarama.OffsetResponse
	err := l.do(ctx, func(b *sarama.Broker) (err error) {
		answer, err = b.GetAvailableOffsets(req)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("ask for an offset of %s/%d: %w", topic, partition, err)
	}
	block := answer.GetBlock(topic, partition)
	switch {
	case block == nil:
		return 0, fmt.Errorf("ask for an offset of %s/%d: %w", topic, partition, sarama.ErrIncompleteResponse)
	case !errors.Is(block.Err, sarama.ErrNoError):
		return 0, fmt.Errorf("ask for an offset of %s/%d: %w", topic, partition, block.Err)
	}
	return block.Offset, nil
}
