package status

import (
	"time"

	"github.com/weirproxy/weir/internal/bus"
	"github.com/weirproxy/weir/internal/statustopic"
)

const (
	// Stale is the silence after which a pod no longer counts as live.
	Stale = statustopic.Stale
	// Forget is the silence after which a pod's record is tombstoned.
	Forget  = time.Hour
	maxPods = 200_000
)

// Book is what weir.status says, as a pure state machine: times are a monotonic clock's. Not safe for
// concurrent use.
type Book struct {
	fingerprint uint32
	pods        map[string]*pod
	clock       statustopic.Clock

	// Skipped counts records that are none of this installation's, and those beyond the bound.
	Skipped uint64
}

type pod struct {
	targets  []string
	appended time.Time
}

// NewBook makes an empty book for an identity key's fingerprint.
func NewBook(fingerprint uint32) *Book {
	return &Book{fingerprint: fingerprint, pods: map[string]*pod{}}
}

// Apply takes one record; it reports whether a pod came, went or changed its targets.
func (b *Book) Apply(m bus.Message, now time.Duration) (changed bool) {
	b.clock.Heard(m.Appended, now)
	key := string(m.Key)
	if m.Value == nil {
		_, known := b.pods[key]
		delete(b.pods, key)
		return known
	}
	s, err := statustopic.Decode(m)
	if err != nil || s.KeyFingerprint != b.fingerprint {
		b.Skipped++
		return false
	}
	known := b.pods[key]
	if known == nil {
		if len(b.pods) >= maxPods {
			b.Skipped++
			return false
		}
		known = &pod{}
		b.pods[key] = known
		changed = true
	}
	changed = changed || !equal(known.targets, s.Targets) || b.age(known, now) > Stale
	known.targets, known.appended = s.Targets, m.Appended
	return changed
}

func equal(a, b []string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

func (b *Book) age(p *pod, now time.Duration) time.Duration {
	return b.clock.Age(p.appended, now)
}

// Live returns the live pods of each target that has any.
func (b *Book) Live(now time.Duration) map[string]int {
	out := map[string]int{}
	for _, p := range b.pods {
		if b.age(p, now) > Stale {
			continue
		}
		for i, t := range p.targets {
			if !contains(p.targets[:i], t) {
				out[t]++
			}
		}
	}
	return out
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

// Silent returns pods whose record is to be tombstoned, at most limit.
func (b *Book) Silent(now time.Duration, limit int) []string {
	var out []string
	for name, p := range b.pods {
		if b.age(p, now) > Forget && len(out) < limit {
			out = append(out, name)
		}
	}
	return out
}
