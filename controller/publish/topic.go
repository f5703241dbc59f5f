package publish

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weirproxy/weir/api/v1alpha1"
	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/controller/changes"
	"github.com/weirproxy/weir/internal/bus"
	"github.com/weirproxy/weir/internal/log"
	"github.com/weirproxy/weir/internal/policy"
	"github.com/weirproxy/weir/internal/policytopic"
)

// Config of a Topic. Name, Keys and Log are required.
type Config struct {
	// Name is the topic's, weir.policies.
	Name string
	// Keys hash the values of secret client sources.
	Keys wirev1.Keys
	Log  *zap.Logger
	// Leads reports whether this process is the leader now; it is asked before each record, and without it
	// nothing is written. Safe for concurrent use. nil: it always is.
	Leads func() bool
	// Pause is how long Changes gathers; default: 100 ms.
	Pause time.Duration
	// Timeout bounds one record from Publish to its acknowledgement, the wait for other records included.
	// Default: 5 s.
	Timeout time.Duration
}

// ErrNotReady is wrapped while nothing can be published: Kafka is away, the topic is not read yet, or this
// process is not the leader. Try again.
var ErrNotReady = errors.New("policies cannot be published yet")

// Desired is a policy as it should be in the topic.
type Desired struct {
	// Document is valid (policy.Validate); its metadata name the record.
	Document *v1alpha1.QuotaPolicy
	// Generation is metadata.generation of its object.
	Generation int64
	// Targets are those of its targets that select pods by labels.
	Targets []policy.Target
}

// Published is what the topic has of a policy of origin kube.
type Published struct {
	// Unread: the topic has not been read to its end yet, so that what is missing here tells nothing.
	Unread bool
	// Known: there is a record.
	Known bool
	// Version is the newest record's offset, Generation the one that it was made from; 0 where another
	// wrote it without.
	Version, Generation int64
	// Others are records of the same name by other origins, in order of precedence: nobody goes by them
	// while there is one of origin kube.
	Others []policy.Key
}

// Topic mirrors weir.policies and writes origin kube. It is safe for concurrent use.
type Topic struct {
	cfg     Config
	ready   chan struct{}
	once    sync.Once // of ready
	changes *changes.Set
	turn    chan struct{} // holds a value while a record is written: one after the other

	mu      sync.Mutex
	book    *book       // another one for another log
	read    bool        // the log, to its end
	writer  *bus.Writer // nil: Run does not run
	trouble trouble
}

// New makes a Topic that reads and writes once Run runs.
func New(cfg Config) *Topic {
	if cfg.Pause == 0 {
		cfg.Pause = 100 * time.Millisecond
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = 5 * time.Second
	}
	if cfg.Leads == nil {
		cfg.Leads = func() bool { return true }
	}
	return &Topic{
		cfg: cfg, ready: make(chan struct{}), changes: changes.NewSet(cfg.Pause), turn: make(chan struct{}, 1),
		book: newBook(),
	}
}

// Ready is closed once the topic has been read to its end.
func (t *Topic) Ready() <-chan struct{} { return t.ready }

// Changes tells of policies whose record, or a record of the same name by another origin, has changed;
// of all where the topic was read first, or again after it was made anew or cut. What Publish wrote itself is no change.
func (t *Topic) Changes() *changes.Set { return t.changes }

// Lookup is what the topic has of a policy.
func (t *Topic) Lookup(n types.NamespacedName) Published {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.book.published(n)
	p.Unread = !t.read
	return p
}

// Orphans lists the policies in the topic of which exists says that they have no object, sorted: Delete ends
// them. exists must answer true for what it cannot know.
func (t *Topic) Orphans(exists func(types.NamespacedName) bool) []types.NamespacedName {
	t.mu.Lock()
	all := t.book.names()
	t.mu.Unlock()
	var out []types.NamespacedName
	for _, n := range all {
		if !exists(n) {
			out = append(out, n)
		}
	}
	return out
}

// Run reads and lets Publish write until ctx ends; then what is being written has two seconds to be
// acknowledged. It returns nil. It may run once.
func (t *Topic) Run(ctx context.Context, client *bus.Client) error {
	// An acknowledgement may come a moment before its place is free again: hence two.
	writer := bus.NewWriter(client, bus.WriterConfig{
		Depth: map[string]int{t.cfg.Name: 2}, State: func(reason string) { t.setTrouble(&t.trouble.writing, reason) },
	})
	defer writer.Close()
	t.setWriter(writer)
	defer t.setWriter(nil)
	for ctx.Err() == nil {
		if err := t.readLog(ctx, client); err != nil {
			return err
		}
	}
	return nil
}

// readLog reads the log from its oldest record on, until ctx ends or the log is another.
func (t *Topic) readLog(ctx context.Context, client *bus.Client) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	another := func(why string) {
		t.begin(why)
		end()
	}
	t.setTrouble(&t.trouble.reading, "")
	return bus.NewReader(client, bus.ReaderConfig{
		Topic: t.cfg.Name, Partitions: map[int32]bus.From{0: {}},
		Handle:    t.handle,
		CaughtUp:  func(int32) { t.caughtUp() },
		Gap:       func(int32, int64, int64) { another("the policy topic's log was cut") },
		Recreated: func(int32, bus.TopicID) { another("the policy topic was made anew") },
		State:     func(_ int32, reason string) { t.setTrouble(&t.trouble.reading, reason) },
	}).Run(ctx)
}

func (t *Topic) setWriter(w *bus.Writer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.writer = w
}

func (t *Topic) handle(m bus.Message) {
	t.mu.Lock()
	name, changed, err := t.book.read(m)
	read := t.read
	t.mu.Unlock()
	if err != nil {
		t.cfg.Log.Warn("a record of the policy topic is passed over", zap.String(log.Policy, string(m.Key)), zap.Error(err))
	}
	if changed && read {
		t.changes.Add(name)
	}
}

func (t *Topic) caughtUp() {
	t.mu.Lock()
	t.read = true
	n := len(t.book.entries)
	t.mu.Unlock()
	t.once.Do(func() { close(t.ready) })
	t.changes.AddAll()
	t.cfg.Log.Info("policy topic read", zap.Int(log.Count, n))
}

// begin forgets the log that is no more. Once the other one is read, all policies are looked at, and what it
// lacks is published again.
func (t *Topic) begin(why string) {
	t.mu.Lock()
	t.book, t.read = newBook(), false
	t.mu.Unlock()
	t.cfg.Log.Warn(why+"; it is read again", zap.String(log.Topic, t.cfg.Name))
}

// wrote takes up what was acknowledged, before the log has been read so far.
func (t *Topic) wrote(in *book, r policytopic.Record, version int64) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.book != in {
		return fmt.Errorf("%w: the policy topic became another while %s was written", ErrNotReady, r.Key)
	}
	_, err := in.put(r.Key, version, r.Value)
	return err
}
