package installation

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/weirproxy/weir/internal/bus"
)

// whole is a reading of partitions to their ends, and on for linger.
type whole struct {
	topic  string
	from   map[int32]bus.From
	linger time.Duration
	// handle gets each record, one at a time; live: it was appended after the reading began.
	handle func(m bus.Message, live bool)
	// enough, if set, ends the lingering earlier. It is asked after each record, as handle is called.
	enough func() bool
}

var errNotRead = errors.New("not read to the end in time")

// reading is the state of one whole.
type reading struct {
	whole
	stop context.CancelFunc

	mu     sync.Mutex
	ended  map[int32]bool // partitions that are caught up
	failed error          // the newest failure
}

// read reads to the end and lingers. It fails at once where waiting cannot help.
func (k *kafka) read(ctx context.Context, w whole) error {
	client, err := k.connected(ctx)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	r := &reading{whole: w, stop: stop, ended: map[int32]bool{}}
	_ = bus.NewReader(client, bus.ReaderConfig{
		Topic: w.topic, Partitions: w.from, Handle: r.take, CaughtUp: r.caughtUp, Error: r.fail,
	}).Run(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case refused(r.failed): // an empty partition is at its end before it is fetched from
		return r.failed
	case len(r.ended) == len(w.from):
		return nil
	case r.failed != nil:
		return fmt.Errorf("%w: %w", errNotRead, r.failed)
	}
	return errNotRead
}

func (r *reading) take(m bus.Message) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.handle(m, r.ended[m.Partition])
	if r.enough != nil && len(r.ended) == len(r.from) && r.enough() {
		r.stop()
	}
}

func (r *reading) caughtUp(partition int32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended[partition] = true; len(r.ended) < len(r.from) {
		return
	}
	if r.linger == 0 {
		r.stop()
		return
	}
	time.AfterFunc(r.linger, r.stop)
}

func (r *reading) fail(_ int32, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failed = err; refused(err) || errors.Is(err, bus.ErrNoTopic) {
		r.stop()
	}
}
