// Package status reads weir.status: which pods live, and so how many each target has.
package status

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirproxy/weir/internal/bus"
)

// Config of a Watcher. Owner0 reports whether this process owns usage partition 0, whose owner
// alone tombstones silent pods, by Tombstone.
type Config struct {
	Client      *bus.Client
	Topic       string
	Fingerprint uint32
	Owner0      func() bool
	Tombstone   func(pod string)
	State       func(reason string)
}

// Watcher keeps the newest view of weir.status. It is safe for concurrent use.
type Watcher struct {
	cfg   Config
	start time.Time
	ready chan struct{}
	live  atomic.Pointer[map[string]int]

	mu   sync.Mutex
	book *Book
}

// NewWatcher makes a watcher that reads once Run runs.
func NewWatcher(cfg Config) *Watcher {
	return &Watcher{cfg: cfg, start: time.Now(), ready: make(chan struct{}), book: NewBook(cfg.Fingerprint)}
}

// Ready is closed once the topic has been read to its end.
func (w *Watcher) Ready() <-chan struct{} { return w.ready }

// Live returns the live pods of each target: a snapshot that is not changed later, nil before Ready.
// A new map is returned when and only when something may have changed.
func (w *Watcher) Live() *map[string]int { return w.live.Load() }

// Run reads until ctx ends.
func (w *Watcher) Run(ctx context.Context) error {
	reader := bus.NewReader(w.cfg.Client, bus.ReaderConfig{
		Topic: w.cfg.Topic, Partitions: map[int32]bus.From{0: {}},
		Handle:   w.handle,
		CaughtUp: func(int32) { w.publish(); close(w.ready) },
		State: func(_ int32, reason string) {
			if w.cfg.State != nil {
				w.cfg.State(reason)
			}
		},
	})
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- reader.Run(ctx) }()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case err := <-done:
			return err
		case <-tick.C:
			w.tick()
		}
	}
}

func (w *Watcher) handle(m bus.Message) {
	w.mu.Lock()
	changed := w.book.Apply(m, time.Since(w.start))
	w.mu.Unlock()
	if changed && w.live.Load() != nil {
		w.publish()
	}
}

func (w *Watcher) publish() {
	w.mu.Lock()
	live := w.book.Live(time.Since(w.start))
	w.mu.Unlock()
	w.live.Store(&live)
}

const tombstonesAtOnce = 100

// tick lets silent pods go.
func (w *Watcher) tick() {
	if w.live.Load() == nil {
		return
	}
	w.mu.Lock()
	live := w.book.Live(time.Since(w.start))
	var silent []string
	if w.cfg.Owner0 != nil && w.cfg.Owner0() {
		silent = w.book.Silent(time.Since(w.start), tombstonesAtOnce)
	}
	w.mu.Unlock()
	if !same(live, *w.live.Load()) {
		w.live.Store(&live)
	}
	for _, pod := range silent {
		w.cfg.Tombstone(pod)
	}
}

func same(a, b map[string]int) bool {
	if len(a) != len(b) {
		return false
	}
	for k, v := range a {
		if b[k] != v {
			return false
		}
	}
	return true
}
