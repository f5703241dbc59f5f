package policy

import (
	"slices"
	"strings"

	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/internal/quota"
)

// Set is all policies in force: an immutable snapshot, safe for concurrent use. The zero value and
// a nil *Set hold no policy.
type Set struct {
	policies  []*Policy
	byName    map[string]*Policy
	byTarget  map[string][]*Policy
	conflicts []Conflict
}

// Conflict is a policy name that more than one origin defines: kube goes before file, file before cli.
type Conflict struct {
	Name    string // namespace/name
	InForce Key
	Ignored []Key
}

// NewSet makes a snapshot. Of one key given twice the higher version counts.
func NewSet(policies []*Policy) *Set {
	sorted := slices.Clone(policies)
	slices.SortStableFunc(sorted, byPrecedence)
	s := &Set{byName: make(map[string]*Policy), byTarget: make(map[string][]*Policy)}
	for _, p := range sorted {
		if winner, taken := s.byName[p.Name]; taken {
			s.noteConflict(winner, p)
			continue
		}
		s.byName[p.Name] = p
		s.policies = append(s.policies, p)
		for i := range p.Targets {
			s.byTarget[p.Targets[i].Name] = append(s.byTarget[p.Targets[i].Name], p)
		}
	}
	return s
}

// byPrecedence sorts by name, of one name the policy in force first.
func byPrecedence(a, b *Policy) int {
	if c := strings.Compare(a.Name, b.Name); c != 0 {
		return c
	}
	if c := originRank(a.Key.Origin) - originRank(b.Key.Origin); c != 0 {
		return c
	}
	if c := strings.Compare(a.Key.Origin, b.Key.Origin); c != 0 {
		return c
	}
	switch {
	case a.Version > b.Version:
		return -1
	case a.Version < b.Version:
		return 1
	}
	return 0
}

// The origins of policies, in order of precedence.
const (
	OriginKube = "kube"
	OriginFile = "file"
	OriginCLI  = "cli"
)

func originRank(origin string) int {
	if i := slices.Index([]string{OriginKube, OriginFile, OriginCLI}, origin); i >= 0 {
		return i
	}
	return 3
}

func (s *Set) noteConflict(winner, loser *Policy) {
	if loser.Key == winner.Key {
		return
	}
	last := len(s.conflicts) - 1
	if last < 0 || s.conflicts[last].Name != winner.Name {
		s.conflicts = append(s.conflicts, Conflict{Name: winner.Name, InForce: winner.Key})
		last++
	}
	if c := &s.conflicts[last]; !slices.Contains(c.Ignored, loser.Key) {
		c.Ignored = append(c.Ignored, loser.Key)
	}
}

// Policies returns the policies in force, sorted by name. The caller must not change the slice.
func (s *Set) Policies() []*Policy {
	if s == nil {
		return nil
	}
	return s.policies
}

// Conflicts returns the names that several origins define. The caller must not change the slice.
func (s *Set) Conflicts() []Conflict {
	if s == nil {
		return nil
	}
	return s.conflicts
}

// Lookup returns the policy in force under a name (namespace/name), nil if there is none.
func (s *Set) Lookup(name string) *Policy {
	if s == nil {
		return nil
	}
	return s.byName[name]
}

// ForTarget returns the policies of a target (canonical name), sorted by name. The caller must not
// change the slice.
func (s *Set) ForTarget(target string) []*Policy {
	if s == nil {
		return nil
	}
	return s.byTarget[target]
}

// ForTargets returns the policies of any of the targets, each once, sorted by name.
func (s *Set) ForTargets(targets ...string) []*Policy {
	var found []*Policy
	for _, t := range targets {
		found = append(found, s.ForTarget(t)...)
	}
	slices.SortFunc(found, byPrecedence)
	return slices.Compact(found)
}

// TargetsOf returns the canonical names of all targets, sorted, that take in a pod (Target.Matches).
func (s *Set) TargetsOf(namespace, ownerKind, ownerName string, labels map[string]string) []string {
	var names []string
	for _, p := range s.Policies() {
		for i := range p.Targets {
			if p.Targets[i].Matches(namespace, ownerKind, ownerName, labels) {
				names = append(names, p.Targets[i].Name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Resolved is what a set says of a counter. Rule is nil where Unlimited.
type Resolved struct {
	Policy    *Policy
	Limit     *Limit
	Rate      *Rate
	Rule      *quota.Rule
	Unlimited bool
}

// Resolve finds the rate that a counter belongs to and the amount in force for it. False: no policy
// in force has such a counter (it was deleted, or counts otherwise now).
func (s *Set) Resolve(id wirev1.Identity) (Resolved, bool) {
	p := s.Lookup(id.Policy)
	if p == nil || !p.attachesTo(id.Target) {
		return Resolved{}, false
	}
	l := p.limitNamed(id.Limit)
	if l == nil || !l.countsBy(id.Dimensions) {
		return Resolved{}, false
	}
	for _, r := range l.Rates {
		if r.has(&id) {
			rule, unlimited := l.Amount(r.Index, id.Dimensions)
			return Resolved{Policy: p, Limit: l, Rate: r, Rule: rule, Unlimited: unlimited}, true
		}
	}
	return Resolved{}, false
}

func (p *Policy) attachesTo(target string) bool {
	return slices.ContainsFunc(p.Targets, func(t Target) bool { return t.Name == target })
}

func (p *Policy) limitNamed(name string) *Limit {
	for _, l := range p.Limits {
		if l.Name == name {
			return l
		}
	}
	return nil
}

func (r *Rate) has(id *wirev1.Identity) bool {
	return r.Identity.Algorithm == id.Algorithm && r.Identity.WindowMillis == id.WindowMillis &&
		r.Identity.Period == id.Period && r.Identity.TimeZone == id.TimeZone
}

// countsBy reports whether dims are what the limit counts by, in its order, or its overflow counter.
func (l *Limit) countsBy(dims []wirev1.Dimension) bool {
	if len(dims) == 1 && dims[0].Kind == wirev1.DimOverflow {
		return len(l.Dimensions) > 0
	}
	if len(dims) != len(l.Dimensions) {
		return false
	}
	for i := range dims {
		if !l.Dimensions[i].covers(&dims[i]) {
			return false
		}
	}
	return true
}

func (d *Dimension) covers(got *wirev1.Dimension) bool {
	switch got.Kind {
	case wirev1.DimEndpoint:
		return d.Kind == ByEndpoint
	case wirev1.DimMethod, wirev1.DimMethodHashed:
		return d.Kind == ByMethod
	case wirev1.DimHost, wirev1.DimHostHashed:
		return d.Kind == ByHost
	case wirev1.DimHeader, wirev1.DimHeaderHashed, wirev1.DimHeaderMissing:
		return d.Kind == ByHeader && d.Name == got.Name
	default:
		return d.Kind == ByClient && got.Kind < wirev1.DimEndpoint
	}
}
