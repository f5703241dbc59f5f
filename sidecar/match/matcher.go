package match

import (
	"fmt"
	"slices"

	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/internal/policy"
)

// Bounds on targets.
const (
	MaxPodTargets   = 8   // charged by every request of a pod
	MaxNamedTargets = 256 // that context extensions may name
)

// Pod says who the sidecar's pod is.
type Pod struct {
	Namespace, OwnerKind, OwnerName string
	Labels                          map[string]string
	// Targets are given by hand (canonical names), beside those that the policies find.
	Targets []string
	// Named are the targets that context_extensions["weir.target"] may name, beside Targets.
	Named []string
}

// Validate says which target is no target, or that there are too many.
func (p *Pod) Validate() error {
	if len(p.Targets) > MaxPodTargets {
		return fmt.Errorf("%d targets of the pod, at most %d; name the rest as targets for context extensions", len(p.Targets), MaxPodTargets)
	}
	if len(p.Named) > MaxNamedTargets {
		return fmt.Errorf("%d targets for context extensions, at most %d; divide them between gateways", len(p.Named), MaxNamedTargets)
	}
	for _, t := range slices.Concat(p.Targets, p.Named) {
		if _, _, _, err := policy.ParseTarget(t); err != nil {
			return err
		}
	}
	return nil
}

// Matcher finds the counters of requests. It is immutable and safe for concurrent use.
type Matcher struct {
	keys      wirev1.Keys
	own       []*target
	named     map[string]*target
	names     []string
	dropped   []string
	uncovered []string
}

// New makes a matcher for a pod from the policies in force.
func New(set *policy.Set, keys wirev1.Keys, pod Pod) (*Matcher, error) {
	if err := pod.Validate(); err != nil {
		return nil, err
	}
	m := &Matcher{keys: keys, named: make(map[string]*target)}
	own := unique(slices.Concat(pod.Targets, set.TargetsOf(pod.Namespace, pod.OwnerKind, pod.OwnerName, pod.Labels)))
	if len(own) > MaxPodTargets {
		own, m.dropped = own[:MaxPodTargets], own[MaxPodTargets:]
	}
	for _, name := range own {
		m.own = append(m.own, m.bind(set, name))
	}
	for _, name := range unique(slices.Concat(pod.Targets, pod.Named)) {
		m.named[name] = m.bind(set, name)
		if len(m.named[name].policies) == 0 {
			m.uncovered = append(m.uncovered, name)
		}
	}
	m.names = unique(slices.Concat(own, pod.Named))
	return m, nil
}

// unique drops repeats and keeps the order.
func unique(names []string) []string {
	var out []string
	for _, n := range names {
		if !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out
}

// Targets returns the canonical names of all targets that requests may be charged to. The caller
// must not change it.
func (m *Matcher) Targets() []string { return m.names }

// Dropped returns the targets beyond MaxPodTargets, which nothing is charged to.
func (m *Matcher) Dropped() []string { return m.dropped }

// Uncovered returns the targets given by hand that no policy is attached to.
func (m *Matcher) Uncovered() []string { return m.uncovered }

// target is a target with the policies attached to it.
type target struct {
	name     string
	policies []boundPolicy
}

type boundPolicy struct {
	policy     *policy.Policy
	sources    []boundSource
	limits     []boundLimit
	needClient bool
}

type boundLimit struct {
	limit      *policy.Limit
	byClient   bool
	dimensions []boundDimension
	rates      []boundRate
}

// boundRate is a rate with what a target and a policy fix of its counters.
type boundRate struct {
	rate   *policy.Rate
	prefix []byte // canonical identity up to and with the number of dimensions
	hash   wirev1.Prefix
	whole  wirev1.ID // of the prefix alone
	// overflow is the limit's overflow counter; nil for a limit of one counter.
	overflow *Overflow
}

// Overflow is the counter that keys share where a table is full or the owner says so. It has the
// limit's own amount. Identity must not be changed.
type Overflow struct {
	ID       wirev1.ID
	Identity []byte
}

func (m *Matcher) bind(set *policy.Set, name string) *target {
	t := &target{name: name}
	for _, p := range set.ForTarget(name) {
		b := boundPolicy{policy: p}
		for i := range p.Client {
			b.sources = append(b.sources, m.bindSource(&p.Client[i]))
		}
		for _, l := range p.Limits {
			if l.Mode == policy.Off {
				continue
			}
			bl := m.bindLimit(name, l)
			b.needClient = b.needClient || bl.byClient || l.EnforcePercent < 100
			b.limits = append(b.limits, bl)
		}
		t.policies = append(t.policies, b)
	}
	return t
}

func (m *Matcher) bindLimit(target string, l *policy.Limit) boundLimit {
	b := boundLimit{limit: l}
	for i := range l.Dimensions {
		d := &l.Dimensions[i]
		b.byClient = b.byClient || d.Kind == policy.ByClient
		b.dimensions = append(b.dimensions, m.bindDimension(d))
	}
	for _, r := range l.Rates {
		id := r.Identity
		id.Target = target
		br := boundRate{rate: r, prefix: id.AppendPrefix(nil, len(l.Dimensions))}
		br.hash, br.whole = m.keys.Prefix(br.prefix), m.keys.ID(br.prefix)
		if len(l.Dimensions) > 0 {
			id.Dimensions = []wirev1.Dimension{{Kind: wirev1.DimOverflow}}
			text := id.Append(nil)
			br.overflow = &Overflow{ID: m.keys.ID(text), Identity: text}
		}
		b.rates = append(b.rates, br)
	}
	return b
}
