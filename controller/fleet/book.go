package fleet

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/internal/bus"
	"github.com/weirproxy/weir/internal/policy"
	"github.com/weirproxy/weir/internal/statustopic"
)

// forget is the silence after which a pod is dropped: the aggregators tombstone its record then, too.
const forget = time.Hour

// Bounds of the mirror. A pod beyond them has no report, as if it had not reported.
const (
	maxPods    = 200_000
	maxApplied = 2_000_000 // policies of all pods together
)

// applied is a policy as a pod has it.
type applied struct {
	version, seen, generation int64
	err                       string
}

// pod is the newest record of a pod. It is replaced, never changed, but for appended and stale.
type pod struct {
	epoch          uint64
	targets        []string // sorted
	policies       map[types.NamespacedName]applied
	ready          bool
	degraded       bool
	reasons        []string
	programVersion string
	fingerprint    uint32

	appended time.Time
	stale    bool // as last told
}

// book is what weir.status says. Not safe for concurrent use.
type book struct {
	clock    statustopic.Clock
	pods     map[string]*pod
	byTarget map[string]map[string]struct{} // pods that name a target
	applied  int                            // policies of all pods together
	skipped  uint64                         // records that were passed over
}

func newBook() *book {
	return &book{pods: map[string]*pod{}, byTarget: map[string]map[string]struct{}{}}
}

// read takes one record and returns the policies whose picture may be another now. live: it was appended a
// moment ago.
func (b *book) read(m bus.Message, live bool, now time.Duration) ([]types.NamespacedName, error) {
	b.time(m.Appended, live, now)
	name := string(m.Key)
	if m.Value == nil {
		return b.drop(name), nil
	}
	s, err := statustopic.Decode(m)
	if err != nil {
		b.skipped++
		return nil, err
	}
	next := podOf(s, m.Appended)
	last := b.pods[name]
	if last != nil && last.says(next) {
		returned := last.stale
		last.appended, last.stale = next.appended, false
		if returned {
			return slices.Collect(maps.Keys(last.policies)), nil
		}
		return nil, nil
	}
	touched := b.drop(name)
	if len(b.pods) >= maxPods || b.applied+len(next.policies) > maxApplied {
		b.skipped++
		return touched, fmt.Errorf("pod %s: the mirror is full with %d pods", name, len(b.pods))
	}
	b.take(name, next)
	return changed(last, next, touched), nil
}

// time takes up what a record tells of the time. Once it is known, it is known which pods are silent.
func (b *book) time(appended time.Time, live bool, now time.Duration) {
	if !live {
		b.clock.Read(appended, now)
		return
	}
	known := b.clock.Known()
	if b.clock.Heard(appended, now); known {
		return
	}
	for _, p := range b.pods {
		p.stale = b.isStale(p, now)
	}
}

// podOf keeps of a record what concerns the pod: its targets, and the policies of origin kube in their
// namespaces and its own.
func podOf(s *wirev1.PodStatus, appended time.Time) *pod {
	p := &pod{
		epoch: s.GetPodEpoch(), targets: slices.Compact(slices.Sorted(slices.Values(s.GetTargets()))),
		policies: map[types.NamespacedName]applied{},
		ready:    s.GetReady(), degraded: s.GetDegraded(), reasons: s.GetReasons(),
		programVersion: s.GetProgramVersion(), fingerprint: s.GetKeyFingerprint(), appended: appended,
	}
	spaces := namespacesOf(s.GetPod(), p.targets)
	for _, a := range s.GetPolicies() {
		key, err := policy.ParseKey(a.GetKey())
		if err != nil || key.Origin != policy.OriginKube || !spaces[key.Namespace] {
			continue
		}
		p.policies[types.NamespacedName{Namespace: key.Namespace, Name: key.Name}] = applied{
			a.GetVersion(), a.GetSeen(), a.GetGeneration(), a.GetError(),
		}
	}
	return p
}

// namespacesOf are those of a pod, namespace/name, and of targets, namespace/kind/name.
func namespacesOf(pod string, targets []string) map[string]bool {
	out := map[string]bool{}
	for _, name := range append([]string{pod}, targets...) {
		namespace, _, _ := strings.Cut(name, "/")
		out[namespace] = true
	}
	return out
}

// says reports whether next says what p does, at another time.
func (p *pod) says(next *pod) bool {
	return p.epoch == next.epoch && p.ready == next.ready && p.degraded == next.degraded &&
		p.programVersion == next.programVersion && p.fingerprint == next.fingerprint &&
		slices.Equal(p.targets, next.targets) && slices.Equal(p.reasons, next.reasons) && maps.Equal(p.policies, next.policies)
}

// concerns reports whether p and next differ in what all their policies' pictures are made of.
func (p *pod) concerns(next *pod) bool {
	return p.stale || p.epoch != next.epoch || p.degraded != next.degraded || p.fingerprint != next.fingerprint || !slices.Equal(p.targets, next.targets)
}

// changed are the policies whose picture a pod's new record may change; before are those of its last one.
func changed(last, next *pod, before []types.NamespacedName) []types.NamespacedName {
	whole := last == nil || last.concerns(next)
	var out []types.NamespacedName
	for _, n := range before {
		if _, still := next.policies[n]; !still {
			out = append(out, n)
		}
	}
	for n, a := range next.policies {
		if whole || last.policies[n] != a {
			out = append(out, n)
		}
	}
	return out
}

func (b *book) take(name string, p *pod) {
	b.pods[name] = p
	b.applied += len(p.policies)
	for _, t := range p.targets {
		if b.byTarget[t] == nil {
			b.byTarget[t] = map[string]struct{}{}
		}
		b.byTarget[t][name] = struct{}{}
	}
}

// drop takes a pod out, and returns its policies.
func (b *book) drop(name string) []types.NamespacedName {
	p := b.pods[name]
	if p == nil {
		return nil
	}
	delete(b.pods, name)
	b.applied -= len(p.policies)
	for _, t := range p.targets {
		if delete(b.byTarget[t], name); len(b.byTarget[t]) == 0 {
			delete(b.byTarget, t)
		}
	}
	return slices.Collect(maps.Keys(p.policies))
}

// clear drops all pods; what is known of the time stays.
func (b *book) clear() {
	clear(b.pods)
	clear(b.byTarget)
	b.applied = 0
}

// tick returns the policies of pods that have become stale since the last one. Until the time is known nobody is
// known to be silent.
func (b *book) tick(now time.Duration) []types.NamespacedName {
	if !b.clock.Known() {
		return nil
	}
	var out []types.NamespacedName
	for _, p := range b.pods {
		if !p.stale && b.isStale(p, now) {
			p.stale = true
			out = slices.AppendSeq(out, maps.Keys(p.policies))
		}
	}
	return out
}

// expire drops pods of whose end nobody told, and returns their policies.
func (b *book) expire(now time.Duration) []types.NamespacedName {
	var out []types.NamespacedName
	for name, p := range b.pods {
		if p.stale && b.clock.Age(p.appended, now) > forget {
			out = append(out, b.drop(name)...)
		}
	}
	return out
}

// isStale: whose age is not known does not count as live.
func (b *book) isStale(p *pod, now time.Duration) bool {
	return !b.clock.Known() || b.clock.Age(p.appended, now) > statustopic.Stale
}

// heard is when a pod's record was appended, on the reader's clock.
func (b *book) heard(p *pod, now time.Duration) time.Duration {
	return now - b.clock.Age(p.appended, now)
}

// naming lists the pods that name a target, sorted.
func (b *book) naming(target string) []string {
	return slices.Sorted(maps.Keys(b.byTarget[target]))
}
