package fleet

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weirproxy/weir/controller/changes"
	"github.com/weirproxy/weir/internal/bus"
	"github.com/weirproxy/weir/internal/log"
)

// Config of a Fleet. Topic and Log are required.
type Config struct {
	// Topic is the topic's name, weir.status.
	Topic string
	// Fingerprint is the identity key's: a pod that has another is foreign.
	Fingerprint uint32
	Log         *zap.Logger
	// Pause is how long Changes gathers; default: 200 ms.
	Pause time.Duration
}

// Report is what a pod's sidecar says of one policy.
type Report struct {
	// Version in force, -1: none; Seen is the newest one seen, Error why that one was refused.
	Version, Seen int64
	Error         string
	// Generation of the version in force; 0: the sidecar is too old to say it.
	Generation int64
	// Targets that the sidecar charges requests to, sorted. Not to be changed.
	Targets []string
	// Stale: the pod has been silent for 30 s.
	Stale bool
	// Former: an earlier run of the pod wrote it.
	Former bool
	// Foreign: the sidecar has another identity key than the installation.
	Foreign bool
}

// Pod is what a pod's sidecar says of itself.
type Pod struct {
	Name           string // namespace/pod
	Targets        []string
	Ready          bool
	Degraded       bool
	Reasons        []string
	ProgramVersion string
	Fingerprint    uint32
	Age            time.Duration // of what it said last
	Stale          bool
}

// Fleet mirrors weir.status. It is safe for concurrent use.
type Fleet struct {
	cfg     Config
	start   time.Time
	ready   chan struct{}
	changes *changes.Set

	mu     sync.Mutex
	book   *book
	runs   runs
	caught bool   // up with the topic's end, once
	reason string // why the topic cannot be read; "" where it can
}

// New makes a Fleet that reads once Run runs.
func New(cfg Config) *Fleet {
	if cfg.Pause == 0 {
		cfg.Pause = 200 * time.Millisecond
	}
	return &Fleet{
		cfg: cfg, start: time.Now(), ready: make(chan struct{}), changes: changes.NewSet(cfg.Pause),
		book: newBook(), runs: runs{}, reason: "Kafka has not answered yet",
	}
}

// Ready is closed once the topic has been read to its end.
func (f *Fleet) Ready() <-chan struct{} { return f.ready }

// Changes tells of policies whose Reports may have changed, by a record or by silence; of all, where the
// topic was read first, or can be read no more or again.
func (f *Fleet) Changes() *changes.Set { return f.changes }

// Waiting says for people what keeps the topic from being read, "" where nothing does. Meanwhile pods seem
// silent that are not.
func (f *Fleet) Waiting() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.reason == "" && !f.caught {
		return "the status topic is not yet read to its end"
	}
	return f.reason
}

// Report is what a pod, namespace/name, says of a policy; false: it has not reported. run tells one run of
// the pod's sidecar from another (the pod's UID with its container's id), "" where that is not known.
func (f *Fleet) Report(pod, run string, policy types.NamespacedName) (Report, bool) {
	now := f.now()
	f.mu.Lock()
	defer f.mu.Unlock()
	p := f.book.pods[pod]
	if p == nil {
		f.runs.former(pod, run, 0, now, now)
		return Report{}, false
	}
	a, listed := p.policies[policy]
	if !listed {
		a = applied{version: -1, seen: -1}
	}
	return Report{
		Version: a.version, Seen: a.seen, Error: a.err, Generation: a.generation, Targets: p.targets,
		Stale: f.book.isStale(p, now), Former: f.runs.former(pod, run, p.epoch, f.book.heard(p, now), now),
		Foreign: p.fingerprint != f.cfg.Fingerprint,
	}, true
}

// Naming lists the pods, namespace/name, whose sidecars charge a target or may be told to
// (context_extensions["weir.target"]), sorted; stale ones included.
func (f *Fleet) Naming(target string) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.book.naming(target)
}

// Pods lists all pods that reported, sorted by name, stale ones included.
func (f *Fleet) Pods() []Pod {
	now := f.now()
	f.mu.Lock()
	defer f.mu.Unlock()
	out := make([]Pod, 0, len(f.book.pods))
	for name, p := range f.book.pods {
		out = append(out, Pod{
			Name: name, Targets: p.targets, Ready: p.ready, Degraded: p.degraded, Reasons: p.reasons,
			ProgramVersion: p.programVersion, Fingerprint: p.fingerprint,
			Age: f.book.clock.Age(p.appended, now), Stale: f.book.isStale(p, now),
		})
	}
	slices.SortFunc(out, func(a, b Pod) int { return strings.Compare(a.Name, b.Name) })
	return out
}

func (f *Fleet) now() time.Duration { return time.Since(f.start) }

// Run reads until ctx ends, and returns nil. It may run once.
func (f *Fleet) Run(ctx context.Context, client *bus.Client) error {
	reader := bus.NewReader(client, bus.ReaderConfig{
		Topic: f.cfg.Topic, Partitions: map[int32]bus.From{0: {}},
		Handle:   f.handle,
		CaughtUp: func(int32) { f.caughtUp() },
		Recreated: func(int32, bus.TopicID) { // pods say again what they have within a heartbeat
			f.cfg.Log.Warn("the status topic was made anew", zap.String(log.Topic, f.cfg.Topic))
		},
		State: func(_ int32, reason string) { f.state(reason) },
	})
	f.state("")
	done := make(chan error, 1)
	go func() { done <- reader.Run(ctx) }()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case err := <-done:
			return err
		case <-tick.C:
			f.tick(f.now())
		}
	}
}

func (f *Fleet) state(reason string) {
	f.mu.Lock()
	changed := f.caught && f.reason != reason
	f.reason = reason
	f.mu.Unlock()
	if changed {
		f.changes.AddAll()
	}
}

func (f *Fleet) handle(m bus.Message) {
	f.mu.Lock()
	names, err := f.read(m, f.now())
	caughtUp := f.caught
	f.mu.Unlock()
	if err != nil {
		f.cfg.Log.Warn("a record of the status topic is passed over", zap.ByteString(log.Pod, m.Key), zap.Error(err))
	}
	if caughtUp {
		f.changes.Add(names...)
	}
}

// read takes one record and returns the policies whose Reports may be others now. f.mu is held.
func (f *Fleet) read(m bus.Message, now time.Duration) ([]types.NamespacedName, error) {
	names, err := f.book.read(m, now)
	name := string(m.Key)
	if p := f.book.pods[name]; p != nil && f.runs.renewed(name, f.book.heard(p, now)) {
		names = slices.AppendSeq(names, maps.Keys(p.policies))
	}
	return names, err
}

func (f *Fleet) caughtUp() {
	f.mu.Lock()
	f.caught = true
	n := len(f.book.pods)
	f.mu.Unlock()
	close(f.ready)
	f.changes.AddAll()
	f.cfg.Log.Info("status topic read", zap.Int(log.Count, n))
}

// tick tells of pods that became silent.
func (f *Fleet) tick(now time.Duration) {
	f.mu.Lock()
	names := f.book.tick(now)
	f.runs.tick(now)
	caughtUp := f.caught
	f.mu.Unlock()
	if caughtUp {
		f.changes.Add(names...)
	}
}
