package agent

import (
	"strings"

	"go.uber.org/zap"

	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/internal/log"
	"github.com/weirproxy/weir/internal/policy"
	"github.com/weirproxy/weir/internal/quota"
	"github.com/weirproxy/weir/sidecar/check"
	"github.com/weirproxy/weir/sidecar/ledger"
	"github.com/weirproxy/weir/sidecar/match"
	"github.com/weirproxy/weir/sidecar/metrics"
)

// Restore takes up the file of last good policies. Call it once, before Run and before the first check: a check
// that comes earlier finds no policies.
func (a *Agent) Restore() {
	a.reasons.set(ReasonPolicies, "the policy topic is not yet read to its end")
	l, err := loadLastGood(a.config.StateFile, a.config.Keys.Fingerprint())
	if err != nil {
		a.log.Warn("starting without last good policies", zap.Error(err))
		return
	}
	if l == nil {
		return
	}
	if bad := a.policies.restore(l); bad > 0 {
		a.log.Warn("some last good policies are no longer understood", zap.Int(log.Count, bad))
	}
	a.partitions = l.Partitions
	a.install()
	for name, n := range l.LivePods {
		if t := a.targets[name]; t != nil {
			t.Fleet.Set(int(n))
		}
	}
	a.log.Info("last good policies are in force", zap.String(log.File, a.config.StateFile), zap.Int(log.Count, len(l.Policies)))
}

// policyRecord takes up one record of the policy topic.
func (a *Agent) policyRecord(key string, offset int64, value []byte) {
	changed, err := a.policies.apply(key, offset, value)
	if err != nil {
		a.metrics.PoliciesBad.Inc()
		a.log.Warn("a policy version is refused; the last good one stays in force",
			zap.String(log.Policy, key), zap.Int64(log.PolicyVer, offset), zap.Error(err))
	}
	a.policies.changed = a.policies.changed || changed || err != nil
}

// policiesRead notes that the policy topic has been read to its end, even if it is empty.
func (a *Agent) policiesRead() {
	a.policies.readToEnd()
	a.policies.changed = true // even where it is empty: see beginInstall
}

// seenPartitions takes the usage topic's own number of partitions where no installation record says it.
func (a *Agent) seenPartitions(n int32) {
	if a.partitions == 0 && a.policies.installation == nil {
		a.partitions = n
		a.moveTargets()
		a.policies.changed = true
	}
}

// due says that there is something new to make a snapshot of, and the whole of it is known.
func (a *Agent) due() bool { return a.policies.changed && a.policies.read }

// installIfChanged makes a new snapshot of the policies, and puts all counters under it.
func (a *Agent) installIfChanged() {
	now := a.now()
	a.beginInstall(now)
	a.refitAll(a.ledger.Live()[:a.pieces.unfit], now)
	a.pieces.unfit = 0
}

// beginInstall makes a new snapshot of the policies, if one is due; counters are put under it piece by piece.
func (a *Agent) beginInstall(now quota.Time) {
	if !a.due() {
		return
	}
	a.pieces.installedAt = now
	a.policies.changed = false
	a.takeInstallation()
	a.install()
	a.reasons.clear(ReasonPolicies) // not before checks can be decided
	a.saver.changed = true
	a.pace.statusAt = 0 // the file follows at its own pace: where policies change each second it is not written each second
}

// takeInstallation holds the installation record against what this program has.
func (a *Agent) takeInstallation() {
	i := a.policies.installation
	if i == nil {
		a.reasons.set(ReasonInstallation, "the policy topic has no installation record: start an aggregator, which writes it")
		return
	}
	a.reasons.clear(ReasonInstallation)
	if err := a.config.Keys.Check(i.GetKeyFingerprint()); err != nil {
		a.reasons.set(ReasonInstallation, err.Error())
		return
	}
	if n := int32(min(i.GetPartitions(), 1<<20)); n != a.partitions { //nolint:gosec // bounded
		a.partitions = n
		a.moveTargets()
	}
}

// moveTargets forgets targets whose partition is another one now. Their counters begin anew.
func (a *Agent) moveTargets() {
	for name, t := range a.targets {
		if t.Partition != a.partitionOf(name) {
			delete(a.targets, name)
		}
	}
}

// removeStrays takes out the counters of targets that are no more, or are heard elsewhere now. What they
// counted is still reported.
func (a *Agent) removeStrays() {
	for i := len(a.ledger.Live()) - 1; i >= 0; i-- {
		if s := a.ledger.Live()[i]; a.stray(s) {
			a.ledger.Remove(s)
		}
	}
}

func (a *Agent) stray(s *ledger.Slot) bool {
	t := a.targets[s.Target]
	return t == nil || t.Fresh != s.Fresh
}

// partitionOf is -1 while the number of partitions is not known: such a target is enforced from local
// memory and reported nowhere.
func (a *Agent) partitionOf(target string) int32 {
	if a.partitions <= 0 {
		return -1
	}
	return wirev1.Partition(target, a.partitions)
}

// install puts the good policies in force: one immutable snapshot for checks, the targets' partitions
// listened to, and each counter under its new amount, with its count kept.
func (a *Agent) install() {
	set := policy.NewSet(a.policies.good())
	m, err := match.New(set, a.config.Keys, a.config.Pod)
	if err != nil {
		a.log.Error("the policies cannot be matched; the last ones stay in force", zap.Error(err))
		a.reasons.set(ReasonRefused, err.Error())
		return
	}
	a.set = set
	a.policies.inForce()
	a.checker.Install(a.snapshot(set, m))
	a.removeStrays()
	a.endHearings()
	a.pieces.unfit = len(a.ledger.Live())
	a.policyReasons(set, m)
	a.log.Info("policies are in force", zap.Int(log.Count, len(set.Policies())), zap.Strings(log.Target, m.Targets()))
}

func (a *Agent) snapshot(set *policy.Set, m *match.Matcher) *check.Snapshot {
	s := &check.Snapshot{
		Matcher: m, Targets: map[string]*check.Target{}, Limits: map[*policy.Limit]*metrics.LimitCounters{},
		Names: map[*policy.Limit]string{}, Policies: set.ForTargets(m.Targets()...),
	}
	for _, name := range m.Targets() {
		s.Targets[name] = a.target(name)
	}
	versions, limits := map[string]int64{}, map[limitKey]struct{}{}
	for _, p := range s.Policies {
		versions[p.Key.String()] = p.Version
		for _, l := range p.Limits {
			s.Limits[l] = a.metrics.Limit(p.Name, l.Name)
			s.Names[l] = check.LimitName(l)
			limits[limitKey{p.Name, l.Name}] = struct{}{}
		}
	}
	for k := range a.limits {
		if _, still := limits[k]; !still {
			a.metrics.ForgetLimit(k.policy, k.limit)
		}
	}
	a.limits = limits
	a.metrics.PolicyVersions(versions)
	for name := range a.targets {
		if s.Targets[name] == nil {
			delete(a.targets, name)
		}
	}
	return s
}

// target returns what checks need of a target; it outlives snapshots.
func (a *Agent) target(name string) *check.Target {
	t := a.targets[name]
	if t == nil {
		t = &check.Target{Name: name, Partition: a.partitionOf(name), Fresh: new(quota.Fresh), Fleet: new(quota.Fleet)}
		if t.Partition >= 0 {
			t.Fresh = &a.hearing(t.Partition).fresh
		}
		a.targets[name] = t
	}
	return t
}

// endHearings stops listening where no target is left.
func (a *Agent) endHearings() {
	needed := map[int32]bool{}
	for _, t := range a.targets {
		needed[t.Partition] = true
	}
	for p, h := range a.hearings {
		if !needed[p] {
			a.drop(h)
		}
	}
}

// refit puts a counter under the amount that the policies in force say. One that no policy has any more
// keeps what it had, and goes when it is idle.
func (a *Agent) refit(s *ledger.Slot, now quota.Time) {
	name := s.Limit[:max(strings.LastIndexByte(s.Limit, '/'), 0)]
	p := a.set.Lookup(name)
	if p == nil || p.Version == s.Counter.Rule().PolicyVersion {
		return
	}
	id, err := wirev1.DecodeIdentity(s.Identity())
	if err != nil {
		return
	}
	if r, ok := a.set.Resolve(id); ok && !r.Unlimited {
		s.Counter.SetRule(r.Rule, now)
	}
}
