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
	// Stale: the pod has been silent for 30 s, or it is not known since when it is.
	Stale bool
	// Degraded: what is in force is enforced as far as the pod can by itself; its readiness says why.
	Degraded bool
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

	next bus.From // what is read next; Run's

	mu      sync.Mutex
	book    *book
	runs    runs
	hearing hearing
	told    string // the last Waiting
}

// New makes a Fleet that reads once Run runs.
func New(cfg Config) *Fleet {
	if cfg.Pause == 0 {
		cfg.Pause = 200 * time.Millisecond
	}
	return &Fleet{
		cfg: cfg, start: time.Now(), ready: make(chan struct{}), changes: changes.NewSet(cfg.Pause),
		book: newBook(), runs: runs{}, hearing: hearing{reason: "Kafka has not answered yet"},
	}
}

// Ready is closed once the topic has been read to its end.
func (f *Fleet) Ready() <-chan struct{} { return f.ready }

// Changes tells of policies whose Reports may have changed, by a record or by silence; of all, where the
// topic was read first, and where Waiting changes.
func (f *Fleet) Changes() *changes.Set { return f.changes }

// Waiting says for people what keeps sidecars from being heard, "" where nothing does. Meanwhile pods seem
// silent that are not. It goes on for 30 s after the topic can be read again, until when every sidecar that
// runs has reported, and at a start until the first one has.
func (f *Fleet) Waiting() string {
	now := f.now()
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.waiting(now)
}

// waiting is called with f.mu held.
func (f *Fleet) waiting(now time.Duration) string {
	return f.hearing.deaf(!f.book.clock.Known() && len(f.book.pods) > 0, now)
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
		Foreign: p.fingerprint != f.cfg.Fingerprint, Degraded: p.degraded,
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
	f.state("")
	done := make(chan error, 1)
	go func() { done <- f.listen(ctx, client) }()
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

// listen reads to the topic's end again and again until ctx ends.
func (f *Fleet) listen(ctx context.Context, client *bus.Client) error {
	for ctx.Err() == nil {
		if err := f.read(ctx, client); err != nil {
			return err
		}
	}
	return nil
}

// read reads on until ctx ends or the topic's end must be met anew: the topic was away, is another, or so much was
// to be read that the end is elsewhere by now.
func (f *Fleet) read(ctx context.Context, client *bus.Client) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	return bus.NewReader(client, bus.ReaderConfig{
		Topic: f.cfg.Topic, Partitions: map[int32]bus.From{0: f.next},
		Handle: f.handle,
		CaughtUp: func(int32) {
			if !f.caughtUp() {
				end()
			}
		},
		Gap: func(int32, int64, int64) {
			f.lost("the status topic's log was cut", false)
			end()
		},
		Recreated: func(int32, bus.TopicID) {
			f.lost("the status topic was made anew", true)
			end()
		},
		State: func(_ int32, reason string) {
			if f.state(reason); reason == "" {
				end()
			}
		},
	}).Run(ctx)
}

// change is what alters the mirror; it tells of the policies that it returns, or of all where Waiting is another
// then.
func (f *Fleet) change(now time.Duration, what func() []types.NamespacedName) {
	f.mu.Lock()
	names := what()
	waiting, caught := f.waiting(now), f.hearing.caught
	all := f.told != waiting
	f.told = waiting
	f.mu.Unlock()
	switch {
	case !caught: // then all are told of
	case all:
		f.changes.AddAll()
	default:
		f.changes.Add(names...)
	}
}

// state: the topic cannot be read for this reason; "": it can be again.
func (f *Fleet) state(reason string) {
	now := f.now()
	f.change(now, func() []types.NamespacedName {
		f.hearing.state(reason, now)
		return nil
	})
}

func (f *Fleet) handle(m bus.Message) {
	f.next = bus.From{Set: true, Offset: m.Offset + 1}
	now := f.now()
	var err error
	f.change(now, func() (names []types.NamespacedName) {
		names, err = f.record(m, now)
		return names
	})
	if err != nil {
		f.cfg.Log.Warn("a record of the status topic is passed over", zap.ByteString(log.Pod, m.Key), zap.Error(err))
	}
}

// record takes one record and returns the policies whose Reports may be others now. f.mu is held.
func (f *Fleet) record(m bus.Message, now time.Duration) ([]types.NamespacedName, error) {
	names, err := f.book.read(m, f.hearing.record(now), now)
	name := string(m.Key)
	if p := f.book.pods[name]; p != nil && f.runs.renewed(name, f.book.heard(p, now)) {
		names = slices.AppendSeq(names, maps.Keys(p.policies))
	}
	return names, err
}

// caughtUp reports whether the topic's end is met.
func (f *Fleet) caughtUp() (end bool) {
	now, first := f.now(), false
	f.change(now, func() []types.NamespacedName {
		first = !f.hearing.caught
		end = f.hearing.caughtUp(now)
		return nil
	})
	if first {
		close(f.ready)
		f.changes.AddAll()
		f.cfg.Log.Info("status topic read", zap.String(log.Topic, f.cfg.Topic))
	}
	return end
}

// lost: records were lost, all of them or some. What is retained is read again; pods that are not in it are dropped,
// at once or when they have been silent for long.
func (f *Fleet) lost(why string, all bool) {
	f.next = bus.From{}
	now := f.now()
	f.change(now, func() []types.NamespacedName {
		if f.hearing.state("", now); all { // the next reader tells if it cannot read
			f.book.clear()
		}
		return nil
	})
	f.changes.AddAll()
	f.cfg.Log.Warn(why+"; it is read again", zap.String(log.Topic, f.cfg.Topic))
}

// tick tells of pods that became silent, and drops those that are long gone.
func (f *Fleet) tick(now time.Duration) {
	f.change(now, func() []types.NamespacedName {
		names := f.book.tick(now)
		if f.hearing.settled(now) {
			names = append(names, f.book.expire(now)...)
		}
		f.runs.tick(now)
		return names
	})
}
