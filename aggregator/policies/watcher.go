package policies

import (
	"context"
	"crypto/sha256"
	"sync"
	"sync/atomic"

	"go.uber.org/zap"

	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/internal/bus"
	"github.com/weirproxy/weir/internal/log"
	"github.com/weirproxy/weir/internal/policy"
)

// WatcherConfig says what to watch and whom to tell.
type WatcherConfig struct {
	Client *bus.Client
	Topic  string
	Log    *zap.Logger
	// State gets the reason why the topic cannot be read, "" when it can.
	State func(reason string)
	// Refused is told of each version that is not taken into force.
	Refused func(error)
}

// Watcher keeps the newest snapshot of weir.policies. It is safe for concurrent use.
type Watcher struct {
	cfg   WatcherConfig
	ready chan struct{}
	set   atomic.Pointer[policy.Set]

	mu   sync.Mutex
	book *Book
}

// NewWatcher makes a watcher that reads once Run runs.
func NewWatcher(cfg WatcherConfig) *Watcher {
	return &Watcher{cfg: cfg, ready: make(chan struct{}), book: NewBook()}
}

// Ready is closed once the topic has been read to its end.
func (w *Watcher) Ready() <-chan struct{} { return w.ready }

// Current is the newest snapshot; nil before Ready.
func (w *Watcher) Current() *policy.Set { return w.set.Load() }

// Problems lists the policies whose newest version is not in force.
func (w *Watcher) Problems() []Problem {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.book.Problems()
}

// Installation is the installation's record, nil if there is none.
func (w *Watcher) Installation() *wirev1.Installation {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.book.Installation()
}

func (w *Watcher) hashes(origin string) map[policy.Key][sha256.Size]byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.book.hashes(origin)
}

// Run reads until ctx ends.
func (w *Watcher) Run(ctx context.Context) error {
	return bus.NewReader(w.cfg.Client, bus.ReaderConfig{
		Topic: w.cfg.Topic, Partitions: map[int32]bus.From{0: {}},
		Handle: w.handle,
		CaughtUp: func(int32) {
			w.publish()
			close(w.ready)
			w.cfg.Log.Info("policies read", zap.Int(log.Count, len(w.Current().Policies())))
		},
		Recreated: func(int32, bus.TopicID) {
			w.cfg.Log.Warn("the policy topic was made anew; policies in force stay until they are published again",
				zap.String(log.Topic, w.cfg.Topic))
		},
		State: func(_ int32, reason string) {
			if w.cfg.State != nil {
				w.cfg.State(reason)
			}
		},
	}).Run(ctx)
}

func (w *Watcher) handle(m bus.Message) {
	w.mu.Lock()
	changed, err := w.book.Apply(m)
	w.mu.Unlock()
	if err != nil {
		w.cfg.Log.Warn("policy refused, the last good version stays in force", zap.String(log.Policy, string(m.Key)),
			zap.Int64(log.PolicyVer, m.Offset), zap.Error(err))
		if w.cfg.Refused != nil {
			w.cfg.Refused(err)
		}
	}
	if changed && w.set.Load() != nil {
		w.publish()
		w.cfg.Log.Info("policy changed", zap.String(log.Policy, string(m.Key)), zap.Int64(log.PolicyVer, m.Offset))
	}
}

func (w *Watcher) publish() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.set.Store(w.book.Set())
}
