package agent

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/weirproxy/weir/internal/log"
	"github.com/weirproxy/weir/internal/policy"
	"github.com/weirproxy/weir/internal/quota"
	"github.com/weirproxy/weir/sidecar/match"
)

const (
	housePeriod  = 250 * time.Millisecond
	savePeriod   = 10 * time.Second
	statusPeriod = 10 * time.Second

	// A slot is given back after so long without a check; at once where the ledger is nearly full.
	idleAfter = time.Minute
	sweep     = 4096 // slots looked at in a period
	headless  = 2 * time.Second
)

// keepHouse does now and then what no event asks for, and returns when to do so again.
func (a *Agent) keepHouse(now quota.Time) time.Duration {
	if now < a.pace.houseAt {
		return time.Duration(a.pace.houseAt - now)
	}
	a.pace.houseAt = now + quota.Time(housePeriod)
	a.evict(now)
	a.observe(now)
	if a.saver.changed && now >= a.pace.saveAt {
		a.pace.saveAt = now + quota.Time(savePeriod)
		a.save()
	}
	if a.evaluate(now) || now >= a.pace.statusAt {
		a.pace.statusAt = now + quota.Time(statusPeriod)
		a.sendStatus(now)
	}
	return housePeriod
}

// evict gives back the slots of idle counters, a part of them at a time.
func (a *Agent) evict(now quota.Time) {
	slots, _ := a.ledger.Size()
	crowded := slots > a.ledger.Capacity()*7/8
	for range min(sweep, len(a.ledger.Live())) {
		live := a.ledger.Live()
		if len(live) == 0 {
			return
		}
		if a.pace.swept >= len(live) {
			a.pace.swept = 0
		}
		s := live[a.pace.swept]
		idle := time.Duration(now - s.Cell.LastUse())
		if (idle >= idleAfter || crowded && idle >= housePeriod) && !s.Listed && s.Counter.Evictable(now) {
			a.ledger.Remove(s) // another slot takes its place in the list
			continue
		}
		a.pace.swept++
	}
}

// save hands over what a restart begins with. It is empty of secrets: policies carry hashes.
func (a *Agent) save() {
	a.saver.changed = false
	if !a.policies.read {
		return
	}
	l := &lastGood{
		Fingerprint: a.config.Keys.Fingerprint(), Partitions: a.partitions,
		Policies: a.policies.save(), LivePods: map[string]uint32{},
	}
	for name, t := range a.targets {
		if n, known := t.Fleet.Pods(); known {
			l.LivePods[name] = uint32(n) //nolint:gosec // a number of pods
		}
	}
	a.saver.put(l)
}

// evaluate finds the reasons now in force, and reports whether what they amount to changed.
func (a *Agent) evaluate(now quota.Time) bool {
	a.decisionReasons(now)
	a.liveReasons()
	if text := a.saver.failed.Load(); text != nil {
		a.reasons.set(ReasonStateFile, *text)
	} else {
		a.reasons.clear(ReasonStateFile)
	}
	for n := a.saver.errors.Swap(0); n > 0; n-- {
		a.metrics.StoreFailed.Inc()
	}
	before := a.health.get()
	graced := time.Duration(now-clockStart) >= a.config.ReadyAfter
	changed := a.health.set(a.reasons.list(), graced)
	if changed {
		after := a.health.get()
		a.metrics.Degraded(after.codes())
		a.log.Info("state", zap.Bool("ready", after.Ready), zap.Bool("degraded", after.Degraded),
			zap.Strings(log.Reason, after.Texts()), zap.Bool("was_ready", before.Ready))
	}
	return changed
}

// decisionReasons: a partition that is needed and not heard.
func (a *Agent) decisionReasons(now quota.Time) {
	var texts []string
	for p, h := range a.hearings {
		age, ok := h.fresh.Age(now)
		switch {
		case h.reason != "":
			texts = append(texts, fmt.Sprintf("decisions of partition %d cannot be read: %s", p, h.reason))
		case !h.live && h.feed.CaughtUp():
			texts = append(texts, fmt.Sprintf("no decision of partition %d yet: is an aggregator running?", p))
		case !h.live:
			texts = append(texts, fmt.Sprintf("decisions of partition %d are not yet read", p))
		case ok && age > headless:
			texts = append(texts, fmt.Sprintf("the owner of partition %d (%s) is silent: each pod enforces its share alone", p, h.instance))
		}
	}
	if a.partitions <= 0 && len(a.targets) > 0 {
		texts = append(texts, "the number of partitions is not known yet")
	}
	slices.Sort(texts)
	a.reasons.setOrClear(ReasonDecisions, join(texts))
}

// liveReasons: what headers have or have not said of the targets.
func (a *Agent) liveReasons() {
	var unknown, strict []string
	for name, t := range a.targets {
		n, known := t.Fleet.Pods()
		if !known {
			unknown = append(unknown, name)
		}
		for _, p := range a.set.ForTarget(name) {
			for _, l := range p.Limits {
				if strictUnavailable(l, n) {
					strict = append(strict, p.Name+"/"+l.Name)
				}
			}
		}
	}
	slices.Sort(unknown)
	slices.Sort(strict)
	strict = slices.Compact(strict)
	if len(unknown) > 0 {
		a.reasons.set(ReasonLivePods, "the number of live pods is not known of "+join(unknown)+": it counts as 1")
	} else {
		a.reasons.clear(ReasonLivePods)
	}
	if len(strict) > 0 {
		a.reasons.set(ReasonStrict, "StrictUnavailable: fewer than 4 units a pod, so Normal holds for "+join(strict))
	} else {
		a.reasons.clear(ReasonStrict)
	}
}

func strictUnavailable(l *policy.Limit, pods int) bool {
	for _, r := range l.Rates {
		if r.Rule.StrictUnavailable(pods) {
			return true
		}
	}
	return false
}

// policyReasons: what a person should know of the policies. Case 15: no policy is never silent.
func (a *Agent) policyReasons(set *policy.Set, m *match.Matcher) {
	a.reasons.setOrClear(ReasonRefused, prefixed("refused, the last good version is in force: ", a.policies.refused()))
	var conflicts []string
	for _, c := range set.Conflicts() {
		conflicts = append(conflicts, fmt.Sprintf("%s (%s is in force)", c.Name, c.InForce))
	}
	a.reasons.setOrClear(ReasonConflict, prefixed("the same policy from two origins: ", conflicts))
	bare := m.Uncovered()
	switch {
	case len(m.Targets()) == 0:
		a.reasons.set(ReasonNoPolicy, "no policy is attached to this pod: requests are allowed and counted as no_policy")
	case len(bare) > 0:
		a.reasons.set(ReasonNoPolicy, "no policy is attached to "+join(bare)+": requests are allowed and counted as no_policy")
	default:
		a.reasons.clear(ReasonNoPolicy)
	}
	if d := m.Dropped(); len(d) > 0 {
		a.log.Warn("a pod has 8 targets at most; nothing is charged to the rest", zap.Strings(log.Target, d))
	}
}

func prefixed(prefix string, items []string) string {
	if len(items) == 0 {
		return ""
	}
	return prefix + join(items)
}

// join names a few and counts the rest.
func join(items []string) string {
	const shown = 5
	if len(items) > shown {
		return strings.Join(items[:shown], ", ") + fmt.Sprintf(" and %d more", len(items)-shown)
	}
	return strings.Join(items, ", ")
}
