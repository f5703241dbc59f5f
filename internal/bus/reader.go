package bus

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"
)

// ReaderConfig says what a Reader reads and whom it tells. All callbacks of one partition run on
// that partition's goroutine, one after the other, and reading waits for them; those of different
// partitions run side by side. All but Topic, Partitions and Handle may be left out.
type ReaderConfig struct {
	Topic      string
	Partitions map[int32]From
	// ID is the topic's id as the caller knows it: where the topic has another, Recreated is called before
	// anything is read. The zero value: whichever is there.
	ID TopicID
	// Handle gets each record in the order of the log. A record may come again only after a Gap.
	Handle func(Message)
	// Fetched is called after the records of each answer that had any have been handled: for those who take records up
	// together.
	Fetched func(partition int32)
	// CaughtUp is called exactly once a partition: when all that was in it when reading began has
	// been handled.
	CaughtUp func(partition int32)
	// Gap: the record wanted is not in the log, which starts (or ended) elsewhere. Reading goes on
	// at to, the oldest retained. to > from: those between are lost (retention). to <= from: the
	// log was cut, and what is retained comes again.
	Gap func(partition int32, from, to int64)
	// Recreated: the topic was made anew and has another id; reading goes on at its oldest record.
	Recreated func(partition int32, id TopicID)
	// State gets the reason why a partition cannot be read, and "" when it can again; only on change.
	State func(partition int32, reason string)
	// Error gets each failure, for counting.
	Error func(partition int32, err error)
	// MaxWait is how long a broker holds a fetch while there is no record; records come at once.
	// Default: 500 ms.
	MaxWait time.Duration
	// MaxBytes of one fetch; a larger record is read all the same, and a slow network gets smaller ones.
	// Default: 1 MiB.
	MaxBytes int32
	// CheckTopic is how often the topic's id is looked at while all goes well. Default: 10 s.
	CheckTopic time.Duration
}

func (c ReaderConfig) withDefaults() ReaderConfig {
	c.Handle = orDo(c.Handle)
	c.Fetched = orDo(c.Fetched)
	c.CaughtUp = orDo(c.CaughtUp)
	if c.Gap == nil {
		c.Gap = func(int32, int64, int64) {}
	}
	c.Recreated = orDo2(c.Recreated)
	c.State = orDo2(c.State)
	c.Error = orDo2(c.Error)
	c.MaxWait = orElse(c.MaxWait, 500*time.Millisecond)
	c.MaxBytes = orElse(c.MaxBytes, 1<<20)
	c.CheckTopic = orElse(c.CheckTopic, 10*time.Second)
	return c
}

func orDo[T any](f func(T)) func(T) {
	if f == nil {
		return func(T) {}
	}
	return f
}

func orDo2[T, U any](f func(T, U)) func(T, U) {
	if f == nil {
		return func(T, U) {}
	}
	return f
}

// Reader reads partitions without a group: each on a goroutine and a connection of its own, from
// where its From says, for as long as Run runs, whatever fails.
type Reader struct {
	client *Client
	cfg    ReaderConfig
}

// NewReader returns a reader that reads once Run runs.
func NewReader(c *Client, cfg ReaderConfig) *Reader {
	return &Reader{client: c, cfg: cfg.withDefaults()}
}

// Run reads until ctx ends, and then returns nil as soon as running callbacks have returned. After
// a failure it connects anew with jittered pauses and goes on after the record handled last.
func (r *Reader) Run(ctx context.Context) error {
	var all sync.WaitGroup
	for partition, from := range r.cfg.Partitions {
		t := &tail{client: r.client, cfg: r.cfg, partition: partition, from: from, replica: -1, id: r.cfg.ID, bytes: r.cfg.MaxBytes,
			said: states{f: func(reason string) { r.cfg.State(partition, reason) }}}
		all.Go(func() { t.run(ctx) })
	}
	all.Wait()
	return nil
}

// tail reads one partition.
type tail struct {
	client    *Client
	cfg       ReaderConfig
	partition int32
	from      From

	placed   bool  // next and end are known
	next     int64 // offset of the record to handle next
	end      int64 // one above what must be handled before the partition is caught up
	caughtUp bool
	id       TopicID // of the topic that next is an offset in
	checked  time.Time
	since    time.Time // what is known of the topic must not be older
	replica  int32     // a follower that the leader sent us to, or -1
	said     states
	worked   bool  // this session has fetched
	bytes    int32 // of the next fetch
}

func (t *tail) run(ctx context.Context) {
	wait := t.client.backoff()
	for ctx.Err() == nil {
		t.worked = false
		err := t.session(ctx)
		if ctx.Err() != nil {
			return
		}
		if errors.Is(err, errElsewhere) {
			continue
		}
		if t.worked {
			wait.reset()
		}
		t.replica, t.since = -1, time.Now()
		t.cfg.Error(t.partition, err)
		t.said.set(t, reasonOf(err))
		if !pause(ctx, wait.step()) {
			return
		}
	}
}

// session reads over one connection until something fails.
func (t *tail) session(ctx context.Context) error {
	l, err := t.connect(ctx)
	if err != nil {
		return err
	}
	defer l.close()
	if !t.placed {
		if err := t.place(ctx, l); err != nil {
			return err
		}
	}
	f := &fetcher{link: l, topic: t.cfg.Topic, partition: t.partition, rack: t.client.cfg.RackID,
		wait: t.cfg.MaxWait, bytes: t.bytes}
	for {
		t.catchUp()
		if err := t.check(ctx, l); err != nil {
			return err
		}
		began := time.Now()
		batch, err := f.fetch(ctx, t.next)
		t.resize(f, time.Since(began), err)
		switch {
		case errors.Is(err, errOutOfRange):
			return t.jump(ctx, err)
		case err != nil:
			return err
		}
		t.worked = true
		t.said.set(t, reason{})
		if !t.deliver(ctx, batch) {
			return ctx.Err()
		}
		if batch.replica >= 0 && batch.replica != t.replica {
			t.replica = batch.replica
			return errElsewhere
		}
	}
}

// leastBytes is what a fetch asks for after one that timed out: little enough for a network of 1 kB/s.
const leastBytes = 4 << 10

// resize fits fetches to what the network carries: an answer that does not arrive within the time-out
// would be asked for again for ever, and grow. One that comes in a quarter of it may be twice as large.
func (t *tail) resize(f *fetcher, took time.Duration, err error) {
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		f.bytes = min(leastBytes, t.cfg.MaxBytes)
	case err == nil && f.bytes < t.cfg.MaxBytes && took < t.client.cfg.RequestTimeout/4:
		f.bytes = min(2*f.bytes, t.cfg.MaxBytes)
	}
	t.bytes = f.bytes
}

// errElsewhere: the leader wants this client to read from another replica.
var errElsewhere = errors.New("read from another replica")

// connect opens a connection to the replica to read from, and notices a topic made anew.
func (t *tail) connect(ctx context.Context) (*link, error) {
	addr, view, err := t.client.leader(ctx, t.cfg.Topic, t.partition, t.since)
	if err != nil {
		return nil, err
	}
	t.seen(view.id)
	if t.replica >= 0 {
		if a, known := t.client.brokerAddr(t.replica); known {
			addr = a
		}
	}
	return t.client.open(ctx, addr, t.cfg.MaxWait+t.client.cfg.RequestTimeout)
}

// seen takes note of the topic's id.
func (t *tail) seen(id TopicID) {
	t.checked = time.Now()
	if id == t.id {
		return
	}
	if t.id != (TopicID{}) {
		t.placed, t.from = false, From{}
		t.cfg.Recreated(t.partition, id)
	}
	t.id = id
}

// check looks at the topic's id now and then: where the new topic has as many records as the old
// one had, nothing else would tell.
func (t *tail) check(ctx context.Context, l *link) error {
	if time.Since(t.checked) < t.cfg.CheckTopic {
		return nil
	}
	id, err := l.topicID(ctx, t.cfg.Topic)
	if err != nil {
		return err
	}
	t.checked = time.Now()
	if id != t.id {
		return fmt.Errorf("topic %s was made anew", t.cfg.Topic)
	}
	return nil
}

// place finds the first record to handle, and the end that it is to catch up with.
func (t *tail) place(ctx context.Context, l *link) error {
	at := placer{link: l, topic: t.cfg.Topic, partition: t.partition}
	end, err := at.newest(ctx)
	if err != nil {
		return err
	}
	next, err := at.start(ctx, t.from, end)
	if err != nil {
		return err
	}
	t.placed, t.next, t.end = true, next, end
	return nil
}

// jump goes to the oldest record retained, where the one wanted is not in the log.
func (t *tail) jump(ctx context.Context, cause error) error {
	t.since = time.Now()
	_, view, err := t.client.leader(ctx, t.cfg.Topic, t.partition, t.since)
	if err != nil {
		return err
	}
	if t.seen(view.id); !t.placed {
		return cause
	}
	oldest, err := t.client.Oldest(ctx, t.cfg.Topic, t.partition)
	if err != nil {
		return err
	}
	newest, err := t.client.Newest(ctx, t.cfg.Topic, t.partition)
	if err != nil {
		return err
	}
	t.cfg.Gap(t.partition, t.next, oldest)
	t.next, t.end = oldest, min(t.end, newest)
	return cause
}

// deliver hands over a batch's records; false if ctx ended amid them.
func (t *tail) deliver(ctx context.Context, b batch) bool {
	for _, m := range b.messages {
		if ctx.Err() != nil {
			return false
		}
		t.cfg.Handle(m)
		t.next = m.Offset + 1
	}
	if len(b.messages) > 0 {
		t.cfg.Fetched(t.partition)
	}
	t.next = max(t.next, b.next)
	if b.drained {
		t.end = min(t.end, t.next)
	}
	return true
}

func (t *tail) catchUp() {
	if !t.caughtUp && t.next >= t.end {
		t.caughtUp = true
		t.cfg.CaughtUp(t.partition)
	}
}
