package ingest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"go.uber.org/zap"
	"google.golang.org/protobuf/proto"

	"github.com/weirproxy/weir/aggregator/partition"
	"github.com/weirproxy/weir/aggregator/store"
	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/internal/bus"
	"github.com/weirproxy/weir/internal/log"
)

// session is one claim of a partition, from claim to loss.
type session struct {
	*Owner
	partition int32
	held      *held
	log       *zap.Logger
}

// retry calls f until it succeeds, ends in an error that repeating cannot mend, or ctx ends.
func retry(ctx context.Context, final func(error) bool, say func(error), f func() error) error {
	wait := 50 * time.Millisecond
	for {
		err := f()
		if err == nil || final(err) {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		say(err)
		pause(ctx, wait)
		wait = min(2*wait, time.Second)
	}
}

// claim appends a claim to the usage partition and writes it into the store's record, in that order,
// and returns the partition's settings and the record as it was.
func (s *session) claim(ctx context.Context) (partition.Config, store.Record, error) {
	cfg := s.cfg.Tuning
	cfg.Partitions, cfg.Keys, cfg.Instance = s.cfg.Partitions(), s.cfg.Keys, s.cfg.Instance
	cfg.Owner.Partition, cfg.Nonces = s.partition, nil
	s.say("claiming")
	if err := s.topicID(ctx, &cfg); err != nil {
		return cfg, store.Record{}, err
	}
	if err := s.appendClaim(ctx, &cfg); err != nil {
		return cfg, store.Record{}, err
	}
	var before store.Record
	waited := false
	err := retry(ctx, func(err error) bool { return errors.Is(err, store.ErrFenced) }, func(err error) {
		s.say("waiting for the store: " + err.Error())
		if !waited {
			s.log.Warn("waiting for the store", zap.Error(err))
			waited = true
		}
	}, func() (err error) {
		before, err = s.cfg.Store.Claim(ctx, cfg.Owner)
		return err
	})
	return cfg, before, s.cutBack(ctx, err)
}

// errCut: the store knows a claim beyond the end of the log.
var errCut = errors.New("the log of usage was cut back (an unclean leader election?)")

// cutBack tells a claim that lost to a newer one from one that the store refuses because the log lost its end.
// No epoch may go back, or an owner from before could write again; so the partition is held again once the
// log has grown past that claim, which pods' reports see to.
func (s *session) cutBack(ctx context.Context, err error) error {
	by, ok := store.FencedBy(err)
	if !ok {
		return err
	}
	end, failed := s.cfg.Client.Newest(ctx, s.cfg.Topics.Usage, s.partition)
	if failed != nil || end > by {
		return err
	}
	return fmt.Errorf("%w: it ends at offset %d, the newest claim that the store knows is at %d. The partition is held again once the log has grown past it; to have it at once, delete the key %s from Redis while no aggregator holds the partition: %w",
		errCut, end, by, store.RecordKey(s.partition), err)
}

func never(error) bool { return false }

func (s *session) topicID(ctx context.Context, cfg *partition.Config) error {
	return retry(ctx, never, func(err error) { s.say("waiting for Kafka: " + err.Error()) }, func() error {
		id, err := s.cfg.Client.TopicID(ctx, s.cfg.Topics.Usage)
		cfg.Owner.LogID = store.LogID(id)
		return err
	})
}

// appendClaim appends claims until one is acknowledged. One that was not may be in the log all the
// same; its nonce is remembered as our own.
func (s *session) appendClaim(ctx context.Context, cfg *partition.Config) error {
	return retry(ctx, never, func(err error) { s.say("waiting for Kafka: " + err.Error()) }, func() error {
		nonce := rand.Uint64() //nolint:gosec // told apart, not kept secret
		cfg.Nonces = append(cfg.Nonces, nonce)
		value, err := proto.Marshal(&wirev1.UsageMessage{Body: &wirev1.UsageMessage_Claim{Claim: &wirev1.Claim{
			KeyFingerprint: s.cfg.Keys.Fingerprint(), Instance: s.cfg.Instance, Nonce: nonce, LogId: cfg.Owner.LogID[:],
		}}})
		if err != nil {
			return err
		}
		acked := make(chan bus.Ack, 1)
		if err := s.cfg.Writer.Send(s.cfg.Topics.Usage, s.partition, nil, value, func(a bus.Ack) { acked <- a }); err != nil {
			return fmt.Errorf("append a claim: %w", err)
		}
		select {
		case a := <-acked:
			cfg.Owner.Epoch = a.Offset
			return a.Err
		case <-ctx.Done():
			return ctx.Err()
		}
	})
}

// from is where the replay starts: some time before the stored offset, at the latest after it, whatever the
// brokers' clocks did since. Where the log begins later, the reader says so (Gap): that usage is lost.
func (s *session) from(ctx context.Context, before store.Record, own store.Owner) (bus.From, error) {
	at, ok := partition.ReplayFrom(before, own.LogID)
	if !ok {
		return bus.From{}, nil
	}
	from := bus.From{Set: true}
	err := retry(ctx, never, func(err error) { s.say("waiting for Kafka: " + err.Error()) }, func() (err error) {
		from.Offset, err = s.cfg.Client.OffsetAt(ctx, s.cfg.Topics.Usage, s.partition, time.UnixMilli(int64(at)))
		return err
	})
	from.Offset = min(from.Offset, before.Offset+1)
	return from, err
}

func (s *session) claimed(cfg *partition.Config, before store.Record) {
	s.mu.Lock()
	s.held.epoch = cfg.Owner.Epoch
	s.mu.Unlock()
	s.say("replaying")
	s.log.Info("partition claimed", zap.Int64(log.Epoch, cfg.Owner.Epoch), zap.Int64("stored_offset", before.Offset),
		zap.Bool("clean", before.Clean), zap.Bool("same_log", before.LogID == cfg.Owner.LogID))
}
