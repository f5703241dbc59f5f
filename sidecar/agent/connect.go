package agent

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/weirproxy/weir/internal/bus"
	"github.com/weirproxy/weir/internal/log"
)

const (
	// replay is how much of a decisions partition a new pod reads.
	replay = 6 * time.Second
	// logIDPeriod is how often the usage topic's id is looked at, logIDTimeout how long an answer may take.
	logIDPeriod  = 10 * time.Second
	logIDTimeout = 5 * time.Second
	// fetchWait is how long a broker holds a fetch without records; it bounds how long a reader takes to end.
	fetchWait = 500 * time.Millisecond
)

// link is the connection to Kafka and what runs on it. A nil link is none yet. Its fields but kick and
// parts are the control goroutine's.
type link struct {
	client *bus.Client
	sends  Sender
	io     func() context.Context
	parts  *sync.WaitGroup
	kick   chan struct{}
}

// writer is nil without a link.
func (l *link) writer() Sender {
	if l == nil {
		return nil
	}
	return l.sends
}

// askLogID has the usage topic's id looked at soon.
func (l *link) askLogID() {
	if l == nil {
		return
	}
	select {
	case l.kick <- struct{}{}:
	default:
	}
}

// connect dials until it has a link, hands it to the control goroutine, and runs what works on it until ctx
// ends.
func (a *Agent) connect(ctx context.Context) {
	cfg := a.config.Kafka
	cfg.State = func(reason string) {
		a.post(ctx, func() { a.reasons.setOrClear(ReasonKafka, waitingFor("Kafka", reason)) })
	}
	a.post(ctx, func() { a.reasons.set(ReasonKafka, "waiting for Kafka to answer") })
	client, err := bus.Dial(ctx, cfg, a.log)
	if err != nil {
		if ctx.Err() == nil { // not a matter of waiting
			a.log.Error("Kafka cannot be used; checks go on from what is known", zap.Error(err))
			a.post(ctx, func() { a.reasons.set(ReasonKafka, err.Error()) })
		}
		return
	}
	defer func() { _ = client.Close() }()
	var parts sync.WaitGroup
	l := &link{client: client, io: func() context.Context { return ctx }, parts: &parts, kick: make(chan struct{}, 1)}
	writer := bus.NewWriter(client, bus.WriterConfig{
		Depth:        map[string]int{a.config.Topics.Status: 2},
		DrainTimeout: a.config.Drain / 6, // what matters was drained before
		State: func(reason string) {
			a.post(ctx, func() { a.reasons.setOrClear(ReasonReports, waitingFor("reports to be taken", reason)) })
		},
	})
	l.sends = writer
	a.post(ctx, func() { a.connected(l) })
	parts.Go(func() { _ = writer.Run(ctx) })
	parts.Go(func() { a.readPolicies(ctx, client) })
	parts.Go(func() { a.watchLogID(ctx, l) })
	<-ctx.Done()
	parts.Wait()
}

func waitingFor(what, reason string) string {
	if reason == "" {
		return ""
	}
	return "waiting for " + what + ": " + reason
}

// connected takes up the link.
func (a *Agent) connected(l *link) {
	a.link = l
	a.reasons.clear(ReasonKafka)
	for _, h := range a.hearings {
		a.listen(h)
	}
}

// listen reads a partition's decisions, if there is a link and nobody reads it yet.
func (a *Agent) listen(h *hearing) {
	if a.link == nil || a.link.client == nil || h.stop != nil {
		return
	}
	ctx, stop := context.WithCancel(a.link.io())
	h.stop = stop
	reader := bus.NewReader(a.link.client, bus.ReaderConfig{
		Topic:      a.config.Topics.Decisions,
		Partitions: map[int32]bus.From{h.partition: {Age: replay}},
		MaxWait:    fetchWait,
		Handle: func(m bus.Message) {
			received := a.now()
			a.post(ctx, func() { a.batch(h, m, received) })
		},
		CaughtUp: func(int32) { a.post(ctx, func() { h.feed.SetCaughtUp() }) },
		State:    func(_ int32, reason string) { a.post(ctx, func() { h.reason = reason }) },
		Error:    func(int32, error) { a.metrics.ReadError(a.config.Topics.Decisions) },
	})
	a.link.parts.Go(func() { _ = reader.Run(ctx) })
}

// readPolicies reads the policy topic from its beginning.
func (a *Agent) readPolicies(ctx context.Context, client *bus.Client) {
	topic := a.config.Topics.Policies
	var fetched []bus.Message
	reader := bus.NewReader(client, bus.ReaderConfig{
		Topic:      topic,
		Partitions: map[int32]bus.From{0: {}},
		MaxWait:    fetchWait,
		Handle:     func(m bus.Message) { fetched = append(fetched, m) },
		Fetched: func(int32) {
			a.takeUp(ctx, fetched)
			fetched = nil
		},
		CaughtUp:  func(int32) { a.post(ctx, a.policiesRead) },
		Recreated: func(int32, bus.TopicID) { a.log.Warn("the policy topic was made anew", zap.String(log.Topic, topic)) },
		State: func(_ int32, reason string) {
			a.post(ctx, func() { a.reasons.setOrClear(ReasonPolicyTopic, waitingFor("the policy topic", reason)) })
		},
		Error: func(int32, error) { a.metrics.ReadError(topic) },
	})
	_ = reader.Run(ctx)
}

// watchLogID tells the control goroutine the usage topic's id, and its number of partitions while no
// installation record says it.
func (a *Agent) watchLogID(ctx context.Context, l *link) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.kick:
		case <-timer.C:
		}
		period := logIDPeriod
		if !a.lookAtUsageTopic(ctx, l.client) {
			period = time.Second
		}
		timer.Reset(period)
		select { // a flood of foreign headers is not to become a flood of questions
		case <-ctx.Done():
			return
		case <-time.After(time.Second / 4):
		}
	}
}

func (a *Agent) lookAtUsageTopic(ctx context.Context, client *bus.Client) bool {
	asked, cancel := context.WithTimeout(ctx, logIDTimeout)
	defer cancel()
	topic := a.config.Topics.Usage
	id, err := client.TopicID(asked, topic)
	var n int32
	if err == nil {
		n, err = client.Partitions(asked, topic)
	}
	if err != nil {
		if ctx.Err() == nil && !errors.Is(err, context.Canceled) {
			a.metrics.ReadError(topic)
			a.post(ctx, func() { a.reasons.set(ReasonUsage, "the usage topic cannot be looked at: "+err.Error()) })
		}
		return false
	}
	return a.post(ctx, func() {
		a.reasons.clear(ReasonUsage)
		a.setLogID(logIDOf(id))
		a.seenPartitions(n)
	})
}

// saver writes the file of last good policies beside the control goroutine, the newest content only.
type saver struct {
	path    string
	changed bool // the control goroutine's: there is something new to save
	next    atomic.Pointer[lastGood]
	wake    chan struct{}
	failed  atomic.Pointer[string]
	errors  atomic.Uint64
}

func newSaver(path string) *saver { return &saver{path: path, wake: make(chan struct{}, 1)} }

// put hands content over; what has not been written yet is replaced.
func (s *saver) put(l *lastGood) {
	if s.path == "" {
		return
	}
	s.next.Store(l)
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *saver) run(ctx context.Context) {
	for {
		select {
		case <-s.wake:
			s.save()
		case <-ctx.Done():
			s.save()
			return
		}
	}
}

func (s *saver) save() {
	l := s.next.Swap(nil)
	if l == nil {
		return
	}
	err := saveLastGood(s.path, l)
	if err == nil {
		s.failed.Store(nil)
		return
	}
	text := err.Error()
	s.failed.Store(&text)
	s.errors.Add(1)
}
