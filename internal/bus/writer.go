package bus

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// ErrClosed says that the writer has been stopped.
var ErrClosed = errors.New("the writer is stopped")

// ErrTooLarge says that a record is above WriterConfig.MaxBytes.
var ErrTooLarge = errors.New("the record is too large")

// WriterConfig bounds a Writer. The zero value is usable.
type WriterConfig struct {
	// Depth is how many unacknowledged records a lane of a topic may hold; they are sent one after
	// the other. Default: 1.
	Depth map[string]int
	// MaxBytes of a key and value together. Default: 900 KiB, below Kafka's own bound of 1 MiB.
	MaxBytes int
	// DrainTimeout bounds the wait for acknowledgements when the writer is stopped. Default: 2 s.
	DrainTimeout time.Duration
	// State gets the reason why some lane cannot be written, "" when all can; only on change.
	State func(reason string)
}

// Writer sends records and never makes a caller wait. A lane is a topic's partition: each has one
// goroutine and, while in use, one connection, so that a slow partition holds up no other. Nothing
// is retried: a failure goes to its Send's done at once, and the next record makes a new attempt.
// Safe for concurrent use.
type Writer struct {
	client *Client
	cfg    WriterConfig
	states states
	ctx    func() context.Context // ends when what is left must fail
	kill   context.CancelFunc

	mu      sync.Mutex
	lanes   map[laneKey]*lane
	stopped bool
	running sync.WaitGroup
}

type laneKey struct {
	topic     string
	partition int32
}

// NewWriter returns a writer. Run must be called to end it.
func NewWriter(c *Client, cfg WriterConfig) *Writer {
	cfg.MaxBytes = orElse(cfg.MaxBytes, 900<<10)
	cfg.DrainTimeout = orElse(cfg.DrainTimeout, 2*time.Second)
	ctx, kill := context.WithCancel(context.Background())
	return &Writer{client: c, cfg: cfg, states: states{f: cfg.State}, kill: kill,
		ctx: func() context.Context { return ctx }, lanes: map[laneKey]*lane{}}
}

// record is one Send under way.
type record struct {
	key, value []byte
	done       func(Ack)
	sent       time.Time
}

// Send hands a record over and returns at once. On nil, done is called exactly once, on a goroutine
// of the lane's, and must not block; it comes at the latest after the produce time-out times the
// lane's depth. On an error (ErrBusy: the lane is at its bound; ErrClosed; ErrTooLarge) nothing was
// sent and done is not called. A nil value is a tombstone. key and value must not be changed before done.
func (w *Writer) Send(topic string, partition int32, key, value []byte, done func(Ack)) error {
	if len(key)+len(value) > w.cfg.MaxBytes {
		return fmt.Errorf("%w: %d bytes for %s, at most %d", ErrTooLarge, len(key)+len(value), topic, w.cfg.MaxBytes)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopped {
		return ErrClosed
	}
	l := w.lane(laneKey{topic, partition})
	if l.held.Load() >= int32(cap(l.queue)) { //nolint:gosec // small
		return ErrBusy
	}
	l.held.Add(1)
	l.queue <- record{key: key, value: value, done: done, sent: time.Now()}
	return nil
}

// lane returns the key's lane, started if it is new. w.mu is held.
func (w *Writer) lane(k laneKey) *lane {
	if l := w.lanes[k]; l != nil {
		return l
	}
	depth := max(w.cfg.Depth[k.topic], 1)
	l := &lane{laneKey: k, writer: w, queue: make(chan record, depth), retry: w.client.backoff()}
	w.lanes[k] = l
	w.running.Go(func() { l.run(w.ctx()) })
	return l
}

// Run sends until ctx ends; then no record is taken any more, those under way have DrainTimeout to be
// acknowledged, and what is left fails with ErrClosed. It returns nil.
func (w *Writer) Run(ctx context.Context) error {
	<-ctx.Done()
	w.Close()
	return nil
}

// Close ends the writer as the end of Run's context does, and waits for it. It may be called again.
func (w *Writer) Close() {
	w.mu.Lock()
	if !w.stopped {
		w.stopped = true
		for _, l := range w.lanes {
			close(l.queue)
		}
	}
	w.mu.Unlock()
	late := time.AfterFunc(w.cfg.DrainTimeout, w.kill)
	w.running.Wait()
	late.Stop()
	w.kill()
}
