package bus

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/IBM/sarama"
)

// idleLink is how long a lane keeps a connection without records: less than any broker does.
const idleLink = time.Minute

// lane sends the records of one partition, one after the other.
type lane struct {
	laneKey
	writer *Writer
	queue  chan record
	held   atomic.Int32 // records handed over and not done

	link    *link
	since   time.Time // what is known of the leader must not be older
	retry   backoff
	closed  time.Time // no connection is tried before
	lastErr error
}

// run sends until the queue is closed and empty. After the end of ctx all that is left fails.
func (l *lane) run(ctx context.Context) {
	idle := time.NewTimer(idleLink)
	defer idle.Stop()
	defer l.drop()
	for {
		select {
		case rec, more := <-l.queue:
			if !more {
				return
			}
			l.finish(rec, l.send(ctx, rec))
			idle.Reset(idleLink)
		case <-idle.C:
			l.drop()
		}
	}
}

// finish gives the place up first, so that done may send again.
func (l *lane) finish(rec record, ack Ack) {
	ack.Took = time.Since(rec.sent)
	l.held.Add(-1)
	if ack.Err == nil {
		l.writer.states.set(l.laneKey, reason{})
	} else if !errors.Is(ack.Err, ErrClosed) {
		l.writer.states.set(l.laneKey, reasonOf(ack.Err))
	}
	if rec.done != nil {
		rec.done(ack)
	}
}

// send produces one record within the produce time-out. Its own deadline, not the broker's word,
// ends it.
func (l *lane) send(ctx context.Context, rec record) Ack {
	if ctx.Err() != nil {
		return Ack{Err: ErrClosed}
	}
	limit := l.writer.client.cfg.ProduceTimeout
	bounded, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	ack, err := l.produce(bounded, rec)
	switch {
	case err == nil:
		return ack
	case ctx.Err() != nil:
		err = fmt.Errorf("%w: it was not acknowledged in time", ErrClosed)
	case bounded.Err() != nil:
		err = fmt.Errorf("no acknowledgement within %v: %w", limit, err)
	}
	return Ack{Err: fmt.Errorf("write to %s/%d: %w", l.topic, l.partition, err)}
}

func (l *lane) produce(ctx context.Context, rec record) (Ack, error) {
	if err := l.connect(ctx); err != nil {
		return Ack{}, err
	}
	stamp := time.Now()
	var answer *sarama.ProduceResponse
	err := l.link.do(ctx, func(b *sarama.Broker) (err error) {
		answer, err = b.Produce(l.request(rec, stamp))
		return err
	})
	if err != nil {
		l.drop()
		return Ack{}, err
	}
	block := answer.GetBlock(l.topic, l.partition)
	if block == nil {
		l.drop()
		return Ack{}, sarama.ErrIncompleteResponse
	}
	if block.Err != sarama.ErrNoError {
		l.refused(block.Err)
		return Ack{}, block.Err
	}
	if block.Timestamp.IsZero() {
		block.Timestamp = stamp // the topic keeps producers' time
	}
	return Ack{Offset: block.Offset, Appended: block.Timestamp}, nil
}

// refused looks for another leader where the broker's answer hints at one.
func (l *lane) refused(err sarama.KError) {
	switch err {
	case sarama.ErrMessageSizeTooLarge, sarama.ErrInvalidMessage, sarama.ErrTopicAuthorizationFailed,
		sarama.ErrNotEnoughReplicas, sarama.ErrNotEnoughReplicasAfterAppend, sarama.ErrRequestTimedOut:
	default:
		l.drop()
		l.since = time.Now()
	}
}

// connect sees to a connection to the leader. After a failure it does not try before a jittered
// pause is over: until then records fail at once, with the same reason.
func (l *lane) connect(ctx context.Context) error {
	if l.link != nil {
		return nil
	}
	if time.Now().Before(l.closed) {
		return l.lastErr
	}
	err := l.open(ctx)
	if err != nil {
		l.lastErr, l.since = err, time.Now()
		l.closed = time.Now().Add(min(l.retry.step(), time.Second/4))
		return err
	}
	l.retry.reset()
	return nil
}

func (l *lane) open(ctx context.Context) error {
	c := l.writer.client
	addr, _, err := c.leader(ctx, l.topic, l.partition, l.since)
	if err != nil {
		return err
	}
	l.link, err = c.open(ctx, addr, c.cfg.ProduceTimeout+c.cfg.RequestTimeout)
	return err
}

func (l *lane) drop() {
	l.link.close()
	l.link = nil
}

// request holds the one record, stamped with the time of its hand-over for topics that keep it.
func (l *lane) request(rec record, stamp time.Time) *sarama.ProduceRequest {
	acks := sarama.WaitForAll
	if l.writer.client.cfg.Acks == AcksLeader {
		acks = sarama.WaitForLocal
	}
	req := &sarama.ProduceRequest{
		Version:      7,
		RequiredAcks: acks,
		Timeout:      int32(l.writer.client.cfg.ProduceTimeout / time.Millisecond), //nolint:gosec // at most a minute
	}
	req.AddBatch(l.topic, l.partition, &sarama.RecordBatch{
		Version:        2,
		FirstTimestamp: stamp,
		MaxTimestamp:   stamp,
		ProducerID:     -1,
		ProducerEpoch:  -1,
		FirstSequence:  -1,
		Records:        []*sarama.Record{{Key: rec.key, Value: rec.value}},
	})
	return req
}
