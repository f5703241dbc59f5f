package ingest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/weirproxy/weir/aggregator/partition"
	"github.com/weirproxy/weir/aggregator/store"
	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/internal/bus"
	"github.com/weirproxy/weir/internal/log"
	"github.com/weirproxy/weir/internal/policy"
	"github.com/weirproxy/weir/internal/quota"
)

// Store is what an owner needs of aggregator/store.
type Store interface {
	Claim(ctx context.Context, o store.Owner) (store.Record, error)
	LoadCounters(ctx context.Context, partition int32, ids []wirev1.ID) ([]store.Saved, error)
	Flush(ctx context.Context, f *store.Flush) error
}

// Observer hears how partitions do. Its methods must not block.
type Observer interface {
	// Observe is called each second a partition and before its end; the counts of s are since the
	// partition was claimed.
	Observe(partition int32, s partition.Stats, g partition.Gauges)
	// Limits is called as often with what was seen of the partition's limits, those it has now.
	Limits(partition int32, seen []partition.Seen)
	// Released: the partition's claim has ended.
	Released(partition int32)
	// Gap: usage of the partition is lost, [from, to).
	Gap(partition int32, from, to int64)
}

// Config of an Owner. All fields are required but those of Tuning.
type Config struct {
	Client   *bus.Client
	Writer   *bus.Writer // at least 2 records deep for usage and decisions
	Store    Store
	Topics   bus.Topics
	Keys     wirev1.Keys
	Instance string
	// Partitions is P.
	Partitions func() int32
	// Policies and Live return the newest snapshots; they do not change.
	Policies func() *policy.Set
	Live     func() *map[string]int
	Observer Observer
	Log      *zap.Logger
	// Tuning's zero values are its defaults; its Owner and Nonces are not used.
	Tuning partition.Config
	// HandoverTimeout bounds what is done for a partition that is given up. Default 2 s.
	HandoverTimeout time.Duration
}

// Owner holds partitions: Own is what bus.Group runs. It is safe for concurrent use.
type Owner struct {
	cfg   Config
	start time.Time

	mu    sync.Mutex
	parts map[int32]*held
}

// held is what others may know of a partition held.
type held struct {
	state  string
	since  time.Time
	epoch  int64
	asked  chan question
	gauges partition.Gauges
}

// NewOwner makes an owner of nothing yet.
func NewOwner(cfg Config) *Owner {
	if cfg.HandoverTimeout == 0 {
		cfg.HandoverTimeout = 2 * time.Second
	}
	return &Owner{cfg: cfg, start: time.Now(), parts: map[int32]*held{}}
}

func (o *Owner) now() quota.Time { return quota.Time(time.Since(o.start)) }

// fencedPause is how long a partition is left alone that somebody else has claimed although the
// group still says that it is ours: longer than a session, so that a zombie has been put right.
const fencedPause = 8 * time.Second

// errAgain: the usage topic was made anew; claim it under its new id.
var errAgain = errors.New("the usage topic was made anew")

// Own holds one partition until ctx ends; then it hands over within the deadline and returns nil.
// It returns an error where another owner has claimed the partition.
func (o *Owner) Own(ctx context.Context, p int32) error {
	h := &held{asked: make(chan question), epoch: -1}
	o.mu.Lock()
	o.parts[p] = h
	o.mu.Unlock()
	defer func() {
		o.mu.Lock()
		delete(o.parts, p)
		o.mu.Unlock()
	}()
	s := &session{Owner: o, partition: p, held: h, log: o.cfg.Log.With(zap.Int32(log.Partition, p))}
	for {
		err := s.run(ctx)
		switch {
		case ctx.Err() != nil:
			s.log.Info("partition given up")
			return nil
		case errors.Is(err, errAgain):
			s.log.Warn("the usage topic was made anew, claiming it again")
		case err != nil:
			if errors.Is(err, errCut) {
				s.say(err.Error())
			} else {
				s.say("another owner has claimed it")
			}
			s.log.Warn("partition lost", zap.Error(err))
			pause(ctx, fencedPause)
			return err
		}
	}
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d/2 + rand.N(d/2+1)) //nolint:gosec // jitter
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// Holding is a partition held, for readiness and people.
type Holding struct {
	Partition int32            `json:"partition"`
	State     string           `json:"state"`
	Since     time.Time        `json:"since"`
	Epoch     int64            `json:"epoch"`
	Gauges    partition.Gauges `json:"gauges"`
}

// Live is the state of a partition that decides.
const Live = "live"

// Holdings lists the partitions held.
func (o *Owner) Holdings() []Holding {
	o.mu.Lock()
	defer o.mu.Unlock()
	var out []Holding
	for p, h := range o.parts {
		out = append(out, Holding{p, h.state, h.since, h.epoch, h.gauges})
	}
	slices.SortFunc(out, func(a, b Holding) int { return int(a.Partition - b.Partition) })
	return out
}

// Holds reports whether the partition is held and live here.
func (o *Owner) Holds(p int32) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	h := o.parts[p]
	return h != nil && h.state == Live
}

// question is answered on the partition's goroutine; answered is closed then.
type question struct {
	answer   func(p *partition.Partition, now quota.Time)
	answered chan struct{}
}

// ask runs a function on the goroutine of a partition held here. An error says that it did not and will not run.
func (o *Owner) ask(ctx context.Context, p int32, answer func(*partition.Partition, quota.Time)) error {
	o.mu.Lock()
	h := o.parts[p]
	o.mu.Unlock()
	if h == nil {
		return fmt.Errorf("partition %d is not held here; ask another aggregator", p)
	}
	q := question{answer, make(chan struct{})}
	select {
	case h.asked <- q:
		<-q.answered
		return nil
	case <-ctx.Done():
		return fmt.Errorf("partition %d does not answer: %w", p, ctx.Err())
	}
}

// Inspect asks what a partition's owner believes of some counters. An error says that the partition
// is not live here or did not answer.
func (o *Owner) Inspect(ctx context.Context, p int32, q partition.Query) (found []partition.Belief, err error) {
	err = o.ask(ctx, p, func(p *partition.Partition, now quota.Time) { found = p.Inspect(q, now) })
	return found, err
}

// Survey asks what the limits of a partition hold, with so many counters of each. It is asked by steps, between which
// the partition goes on. An error is as Inspect's.
func (o *Owner) Survey(ctx context.Context, p int32, counters int) (views []partition.LimitView, err error) {
	s, done := partition.NewSurvey(counters), false
	for !done && err == nil {
		err = o.ask(ctx, p, func(p *partition.Partition, now quota.Time) { views, done = p.Survey(s, now) })
	}
	return views, err
}

// say notes the partition's state, for readiness.
func (s *session) say(state string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held.state != state {
		s.held.state, s.held.since = state, time.Now()
	}
}
