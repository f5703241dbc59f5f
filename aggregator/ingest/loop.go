package ingest

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.uber.org/zap"
	"google.golang.org/protobuf/proto"

	"github.com/weirproxy/weir/aggregator/partition"
	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/internal/bus"
	"github.com/weirproxy/weir/internal/policy"
	"github.com/weirproxy/weir/internal/quota"
)

const (
	readAhead    = 256 // messages between the reader and the loop
	loadPause    = 100 * time.Millisecond
	observeEach  = time.Second
	longestSleep = time.Second
)

// loop owns a partition's state; all of its fields are its goroutine's.
type loop struct {
	*session
	p        *partition.Partition
	cfg      partition.Config
	messages chan bus.Message
	again    chan struct{} // the topic was made anew
	results  chan func()   // of calls beside the loop
	calls    sync.WaitGroup
	callCtx  context.Context //nolint:containedctx // of the calls beside the loop, which outlive ctx at a handover

	policies  *policy.Set
	live      *map[string]int
	loadAfter quota.Time
	observed  quota.Time
	wasLive   bool
	storeAway bool
}

// run claims the partition and holds it until ctx ends, another owner is met or the topic is made anew.
func (s *session) run(ctx context.Context) error {
	cfg, before, err := s.claim(ctx)
	if err != nil {
		return err
	}
	from, err := s.from(ctx, before, cfg.Owner)
	if err != nil {
		return err
	}
	s.claimed(&cfg, before)
	callCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	l := &loop{
		session: s, cfg: cfg, p: partition.New(cfg, before, s.now()), callCtx: callCtx,
		messages: make(chan bus.Message, readAhead), again: make(chan struct{}, 1), results: make(chan func(), 8),
	}
	readCtx, stopReading := context.WithCancel(ctx)
	var reading sync.WaitGroup
	reading.Go(func() { l.read(readCtx, from) })
	err = l.hold(ctx)
	stopReading()
	reading.Wait()
	if errors.Is(err, errAgain) { // the next claim needs the store too: wait for it with what it lacks
		l.say("the usage topic was made anew; writing what was counted")
		l.handOver(ctx)
	}
	if ctx.Err() != nil && !l.p.HandedOver() {
		bounded, end := context.WithTimeout(context.WithoutCancel(ctx), s.cfg.HandoverTimeout)
		l.handOver(bounded)
		end()
	}
	cancel()
	l.calls.Wait()
	s.cfg.Observer.Observe(s.partition, l.p.Stats(), l.p.Gauges(s.now()))
	s.cfg.Observer.Released(s.partition)
	return err
}

// read feeds the loop; it waits where the loop does not keep up.
func (l *loop) read(ctx context.Context, from bus.From) {
	reader := bus.NewReader(l.session.cfg.Client, bus.ReaderConfig{
		Topic: l.session.cfg.Topics.Usage, Partitions: map[int32]bus.From{l.partition: from},
		ID:      bus.TopicID(l.cfg.Owner.LogID), // what is read must be the log that was claimed
		MaxWait: 100 * time.Millisecond,
		Handle: func(m bus.Message) {
			select {
			case l.messages <- m:
			case <-ctx.Done():
			}
		},
		Gap: func(p int32, from, to int64) {
			l.log.Warn("usage is lost, or the log was cut", zap.Int64("from", from), zap.Int64("to", to))
			l.session.cfg.Observer.Gap(p, from, to)
		},
		Recreated: func(int32, bus.TopicID) {
			select {
			case l.again <- struct{}{}:
			default:
			}
			<-ctx.Done() // what is read from here on belongs to the next claim
		},
		State: func(_ int32, reason string) {
			if reason != "" {
				l.log.Warn("usage cannot be read", zap.String("reason", reason))
			} else {
				l.log.Info("usage can be read again")
			}
		},
	})
	_ = reader.Run(ctx) // it ends with ctx alone
}

// hold is the partition's event loop.
func (l *loop) hold(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		l.step()
		if err := l.p.Stopped(); err != nil {
			return err
		}
		timer.Reset(l.sleep())
		messages := l.messages
		if l.p.Backlogged() {
			messages = nil
		}
		select {
		case m := <-messages:
			l.take(m)
		case f := <-l.results:
			f()
		case <-timer.C:
		case q := <-l.held.asked:
			q.answer(l.p, l.now())
			close(q.answered)
		case <-l.again:
			return errAgain
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// take reads m and what else is there already, up to a bound, so that timers are looked at in time.
func (l *loop) take(m bus.Message) {
	now := l.now()
	for range 64 {
		l.p.Read(m.Offset, quota.Millis(m.Appended.UnixMilli()), m.Value, now)
		select {
		case m = <-l.messages:
		default:
			return
		}
	}
	l.p.Read(m.Offset, quota.Millis(m.Appended.UnixMilli()), m.Value, now)
}

// step does all that is due.
func (l *loop) step() {
	now := l.now()
	if s := l.session.cfg.Policies(); s != l.policies {
		l.policies = s
		l.p.SetPolicies(s, now)
	}
	if live := l.session.cfg.Live(); live != l.live && live != nil {
		l.live = live
		l.p.SetLive(*live)
	}
	if now >= l.loadAfter {
		if ids := l.p.Load(); ids != nil {
			l.load(ids)
		}
	}
	if now >= l.p.NextFlush() {
		l.flush(false)
	}
	if b := l.p.Tick(now); b != nil {
		l.send(b)
	}
	l.observe(now)
}

func (l *loop) sleep() time.Duration {
	now := l.now()
	next := min(now+quota.Time(longestSleep), max(l.p.NextFlush(), now+quota.Time(time.Millisecond)))
	if at, ok := l.p.NextTick(now); ok {
		next = min(next, at)
	}
	if l.loadAfter > now {
		next = min(next, l.loadAfter)
	}
	return time.Duration(max(next-now, 0))
}

// beside runs a call beside the loop and its outcome on the loop.
func (l *loop) beside(call func() func()) {
	l.calls.Go(func() { l.results <- call() })
}

func (l *loop) load(ids []wirev1.ID) {
	l.beside(func() func() {
		saved, err := l.session.cfg.Store.LoadCounters(l.callCtx, l.partition, ids)
		return func() {
			if err != nil {
				l.loadAfter = l.now() + quota.Time(loadPause)
				l.p.LoadFailed(ids, l.now())
				return
			}
			l.p.Loaded(saved, l.now())
		}
	})
}

func (l *loop) flush(final bool) bool {
	f := l.p.Flush(l.now(), final)
	if f == nil {
		return false
	}
	l.beside(func() func() {
		err := l.session.cfg.Store.Flush(l.callCtx, f)
		return func() {
			l.flushed(err)
			l.p.Flushed(err, l.now())
		}
	})
	return true
}

// flushed logs the store's coming and going.
func (l *loop) flushed(err error) {
	if away := err != nil; away != l.storeAway {
		l.storeAway = away
		if away {
			l.log.Warn("the store is away; going on from memory", zap.Error(err))
		} else {
			l.log.Info("the store is written again")
		}
	}
}

func (l *loop) send(b *wirev1.DecisionBatch) {
	value, err := proto.Marshal(b)
	if err == nil {
		err = l.session.cfg.Writer.Send(l.session.cfg.Topics.Decisions, l.partition, nil, value, func(a bus.Ack) {
			l.results <- func() { l.p.Sent(a.Err == nil, a.Took, l.now()) }
		})
	}
	if err != nil {
		l.p.Sent(false, 0, l.now())
	}
}

func (l *loop) observe(now quota.Time) {
	if live := l.p.Live(); live != l.wasLive {
		l.wasLive = live
		l.say(Live)
		l.log.Info("partition live", zap.Int64("watermark", l.p.Gauges(now).Watermark))
	} else if now-l.observed < quota.Time(observeEach) {
		return
	}
	l.observed = now
	g := l.p.Gauges(now)
	l.mu.Lock()
	l.held.gauges = g
	l.mu.Unlock()
	l.session.cfg.Observer.Observe(l.partition, l.p.Stats(), g)
	l.session.cfg.Observer.Limits(l.partition, l.p.Limits(now))
}
