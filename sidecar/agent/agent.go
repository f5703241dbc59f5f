package agent

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/internal/bus"
	"github.com/weirproxy/weir/internal/policy"
	"github.com/weirproxy/weir/internal/quota"
	"github.com/weirproxy/weir/sidecar/check"
	"github.com/weirproxy/weir/sidecar/feed"
	"github.com/weirproxy/weir/sidecar/ledger"
	"github.com/weirproxy/weir/sidecar/match"
	"github.com/weirproxy/weir/sidecar/metrics"
	"github.com/weirproxy/weir/sidecar/report"
)

// Config is what an Agent works with. All fields are required but StateFile, MaxCounters and
// MaxInFlight.
type Config struct {
	// Name is namespace/pod, Pod who the pod is to policies.
	Name string
	Pod  match.Pod
	Keys wirev1.Keys
	// Kafka is how to reach the brokers, Topics the names of the topics.
	Kafka  bus.Config
	Topics bus.Topics
	// StateFile keeps the last good policies; "": none.
	StateFile string
	// MaxCounters and MaxInFlight: 0 for the defaults of ledger and check.
	MaxCounters, MaxInFlight int
	// ReadyAfter is how long after Run's start the agent is ready whatever it lacks.
	ReadyAfter time.Duration
	// Drain bounds the final flush.
	Drain time.Duration
	// Version of the program, for the status record.
	Version string
	// Clock is the pod's monotonic time, an hour at its start; nil: the machine's. For tests and simulations.
	Clock func() quota.Time
	// Seed of all that is left to chance, the pod's epoch among it; 0: drawn anew.
	Seed uint64
	// Cells are the ledger's; nil: its own.
	Cells func(n int) []quota.Cell
}

// clockStart keeps pod time well away from 0, which quota takes for "none".
const clockStart = quota.Time(time.Hour)

// events that may wait for the control goroutine; readers wait beyond it.
const maxEvents = 256

// Agent is the control side of a sidecar. Run it once. Checker, State, SetStarted and the questions of /debug (Policies,
// Decisions, Counters, Explain) are safe for concurrent use.
type Agent struct {
	config  Config
	log     *zap.Logger
	now     func() quota.Time // the pod's monotonic time
	ledger  *ledger.Ledger
	known   *feed.Known
	metrics *metrics.Metrics
	checker *check.Checker
	health  health

	events chan func()
	acks   chan func()
	ended  chan struct{} // closed when Run returns

	// The control goroutine's own.
	rnd        quota.Rand
	builder    *report.Builder
	policies   *policies
	set        *policy.Set
	targets    map[string]*check.Target
	limits     map[limitKey]struct{}
	partitions int32
	logID      []byte
	link       *link
	saver      *saver
	reasons    reasons
	pace       pace
	pieces     pieces
	podEpoch   uint64

	hearings   map[int32]*hearing
	hearingsMu sync.RWMutex // held to write hearings, and to read it on check goroutines
}

type limitKey struct{ policy, limit string }

// New makes an agent that registers its metrics with reg.
func New(c Config, log *zap.Logger, reg prometheus.Registerer) *Agent {
	if c.Seed == 0 {
		c.Seed = rand.Uint64()
	}
	chance := quota.NewRand(c.Seed)
	a := &Agent{
		config: c, log: log, now: c.Clock,
		known:  feed.NewKnown(0),
		events: make(chan func(), maxEvents),
		acks:   make(chan func(), maxLanes),
		ended:  make(chan struct{}),
		rnd:    quota.NewRand(chance.Uint64()), podEpoch: chance.Uint64(),
		policies: newPolicies(c.Keys),
		targets:  map[string]*check.Target{}, limits: map[limitKey]struct{}{},
		hearings: map[int32]*hearing{},
	}
	if a.now == nil {
		a.now = clock()
	}
	a.ledger = ledger.New(ledger.Config{Slots: c.MaxCounters, Cells: c.Cells, Prepare: a.prepare})
	a.builder = report.New(report.Config{Pod: c.Name, PodEpoch: a.podEpoch, KeyFingerprint: c.Keys.Fingerprint(), Included: a.included})
	a.metrics = metrics.New(reg, metrics.Sources{
		Slots: func() (int, int, int) {
			slots, bytes := a.ledger.Size()
			return slots, a.ledger.Capacity(), bytes
		},
		Overflowed: a.ledger.Full,
		Known:      a.known.Len,
		Ready:      func() bool { return a.State().Ready },
		Degraded:   func() bool { return a.State().Degraded },
	})
	a.checker = check.New(check.Config{
		Ledger: a.ledger, Metrics: a.metrics, Clock: a.now, MaxInFlight: c.MaxInFlight,
		Known: func(id wirev1.ID) bool { _, ok := a.known.Get(id); return ok },
	})
	a.saver = newSaver(c.StateFile)
	return a
}

// Checker answers requests by what the agent knows.
func (a *Agent) Checker() *check.Checker { return a.checker }

// Metrics are the sidecar's.
func (a *Agent) Metrics() *metrics.Metrics { return a.metrics }

// State is what probes and the status record say.
func (a *Agent) State() State { return a.health.get() }

// SetStarted notes whether the check server listens.
func (a *Agent) SetStarted(listens bool) { a.health.started.Store(listens) }

// clock is the machine's monotonic time since now.
func clock() func() quota.Time {
	began := time.Now()
	return func() quota.Time { return clockStart + quota.Time(time.Since(began)) }
}

// Run works from what Restore found until ctx ends, which must be after the last check; then it sends what is not yet
// reported, takes the pod out of the status topic, and returns within Config.Drain and a little.
func (a *Agent) Run(ctx context.Context) error {
	defer close(a.ended)
	io, stop := context.WithCancel(context.WithoutCancel(ctx)) // Kafka is needed after ctx has ended
	defer stop()
	var parts sync.WaitGroup
	parts.Go(func() { a.saver.run(io) })
	parts.Go(func() { a.connect(io) })
	a.loop(ctx)
	a.finish()
	stop()
	a.dropEvents(&parts)
	return nil
}

// post hands an event to the control goroutine, and waits for room; false if ctx ended before.
func (a *Agent) post(ctx context.Context, event func()) bool {
	select {
	case a.events <- event:
		return true
	case <-ctx.Done():
		return false
	}
}

// ErrStopped is the answer to questions that come after the agent's end.
var ErrStopped = errors.New("the sidecar has stopped")

// ask runs f on the control goroutine and returns what it returned. It fails when ctx ends or the agent has
// stopped; f may run all the same, so that it shares nothing with an asker who has gone.
func ask[T any](ctx context.Context, a *Agent, f func() T) (v T, err error) {
	answer := make(chan T, 1)
	select {
	case a.events <- func() { answer <- f() }:
	case <-a.ended:
		return v, ErrStopped
	case <-ctx.Done():
		return v, ctx.Err()
	}
	select {
	case v = <-answer:
		return v, nil
	case <-a.ended:
		return v, ErrStopped
	case <-ctx.Done():
		return v, ctx.Err()
	}
}

// loop is the control goroutine's life.
func (a *Agent) loop(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case event := <-a.events:
			event()
		case ack := <-a.acks:
			ack()
		case <-a.ledger.Wake():
		case <-a.urgent():
			a.pace.urgent = true
		case <-timer.C:
		}
		timer.Reset(a.step())
	}
}

// step does what is due, and returns when to look again at the latest.
func (a *Agent) step() time.Duration {
	now := a.now()
	a.takePending()
	wait := min(a.flushIfDue(now), a.work(now))
	return min(wait, a.keepHouse(now))
}

// takePending handles what else has come.
func (a *Agent) takePending() {
	for range maxEvents {
		select {
		case event := <-a.events:
			event()
		case ack := <-a.acks:
			ack()
		default:
			return
		}
	}
}

// dropEvents lets those end who wait to hand something over.
func (a *Agent) dropEvents(parts *sync.WaitGroup) {
	ended := make(chan struct{})
	go func() { parts.Wait(); close(ended) }()
	for {
		select {
		case <-a.events:
		case <-a.acks:
		case <-ended:
			return
		}
	}
}
