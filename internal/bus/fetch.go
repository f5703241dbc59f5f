package bus

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/IBM/sarama"
)

var errOutOfRange = errors.New("the offset wanted is not in the log")

// fetcher fetches one partition over one connection.
type fetcher struct {
	link      *link
	topic     string
	partition int32
	rack      string
	wait      time.Duration
	bytes     int32
}

// batch is what one fetch brought.
type batch struct {
	messages []Message
	// next is the offset after the last record, which compaction may have put beyond it.
	next int64
	// drained: there is nothing to read up to the end, though offsets are left (compaction).
	drained bool
	// replica to read from, or -1.
	replica int32
}

// fetch waits for records from offset on, up to f.wait. errOutOfRange where the log has no such offset.
func (f *fetcher) fetch(ctx context.Context, offset int64) (batch, error) {
	block, err := f.ask(ctx, offset)
	if err != nil {
		return batch{}, err
	}
	switch block.Err {
	case sarama.ErrNoError:
	case sarama.ErrOffsetOutOfRange:
		return batch{}, fmt.Errorf("%s/%d offset %d: %w", f.topic, f.partition, offset, errOutOfRange)
	default:
		return batch{}, fmt.Errorf("fetch %s/%d: %w", f.topic, f.partition, block.Err)
	}
	out := batch{next: offset, replica: block.PreferredReadReplica}
	partial := block.Partial
	for _, set := range block.RecordsSet {
		rb := set.RecordBatch
		if rb == nil {
			return batch{}, fmt.Errorf("fetch %s/%d: records of a format older than Kafka 0.11 are not read", f.topic, f.partition)
		}
		if rb.PartialTrailingRecord {
			partial = true
			break
		}
		out.add(f.topic, f.partition, offset, rb)
	}
	return f.settle(out, block, offset, partial)
}

// settle deals with an answer without records: one that did not fit, or offsets that compaction emptied.
func (f *fetcher) settle(out batch, block *sarama.FetchResponseBlock, offset int64, partial bool) (batch, error) {
	if out.next > offset || out.replica >= 0 {
		return out, nil
	}
	switch {
	case partial && f.bytes > math.MaxInt32/2:
		return batch{}, fmt.Errorf("fetch %s/%d: the record at offset %d is too large", f.topic, f.partition, offset)
	case partial:
		f.bytes *= 2
	case offset < block.HighWaterMarkOffset:
		out.drained = true
		out.next = offset + 1
	}
	return out, nil
}

func (b *batch) add(topic string, partition int32, offset int64, rb *sarama.RecordBatch) {
	if !rb.Control {
		for _, rec := range rb.Records {
			at := rb.FirstOffset + rec.OffsetDelta
			if at < offset {
				continue
			}
			appended := rb.FirstTimestamp.Add(rec.TimestampDelta)
			if rb.LogAppendTime {
				appended = rb.MaxTimestamp
			}
			b.messages = append(b.messages, Message{Topic: topic, Partition: partition, Offset: at,
				Key: rec.Key, Value: rec.Value, Appended: appended})
		}
	}
	b.next = max(b.next, rb.LastOffset()+1)
}

func (f *fetcher) ask(ctx context.Context, offset int64) (*sarama.FetchResponseBlock, error) {
	req := &sarama.FetchRequest{
		Version:      11,
		MaxWaitTime:  int32(f.wait / time.Millisecond), //nolint:gosec // at most minutes
		MinBytes:     1,
		MaxBytes:     f.bytes,
		SessionEpoch: -1, // no fetch session: one partition needs none
		RackID:       f.rack,
	}
	req.AddBlock(f.topic, f.partition, offset, f.bytes, -1)
	var answer *sarama.FetchResponse
	err := f.link.do(ctx, func(b *sarama.Broker) (err error) {
		answer, err = b.Fetch(req)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("fetch %s/%d from %s: %w", f.topic, f.partition, f.link.addr, err)
	}
	if answer.ErrorCode != 0 {
		return nil, fmt.Errorf("fetch %s/%d from %s: %w", f.topic, f.partition, f.link.addr, sarama.KError(answer.ErrorCode))
	}
	block := answer.GetBlock(f.topic, f.partition)
	if block == nil && answer.ThrottleTime > 0 {
		return &sarama.FetchResponseBlock{PreferredReadReplica: -1}, nil // over a quota: Sarama waits before the next
	}
	if block == nil {
		return nil, fmt.Errorf("fetch %s/%d from %s: %w", f.topic, f.partition, f.link.addr, sarama.ErrIncompleteResponse)
	}
	return block, nil
}
