package installation

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/internal/bus"
	"github.com/weirproxy/weir/internal/checkup"
	"github.com/weirproxy/weir/internal/policy"
	"github.com/weirproxy/weir/internal/statustopic"
)

// maxPods bounds what is kept of the status topic, as the aggregators do.
const maxPods = 200_000

// fleet is what the sidecars say of themselves.
type fleet struct {
	pods    []*pod // sorted by name
	foreign int    // records that are no status
}

type pod struct {
	*wirev1.PodStatus
	age time.Duration // since its newest record
}

func (p *pod) stale() bool { return p.age > statustopic.Stale }

// live are the pods that have been heard of lately.
func (f *fleet) live() []*pod {
	return slices.DeleteFunc(slices.Clone(f.pods), (*pod).stale)
}

// having are the live pods that have a target.
func (f *fleet) having(target string) []*pod {
	return slices.DeleteFunc(f.live(), func(p *pod) bool { return !slices.Contains(p.Targets, target) })
}

func (k *kafka) fleet(ctx context.Context) (*fleet, error) {
	return k.pods.get(ctx, func(ctx context.Context) (*fleet, error) {
		f, pods, appended := &fleet{}, map[string]*wirev1.PodStatus{}, map[string]time.Time{}
		err := k.read(ctx, whole{topic: k.names().Status, from: map[int32]bus.From{0: {}}, handle: func(m bus.Message, _ bool) {
			name := string(m.Key)
			if m.Value == nil {
				delete(pods, name)
				return
			}
			s, err := statustopic.Decode(m)
			if err != nil || pods[name] == nil && len(pods) >= maxPods {
				f.foreign++
				return
			}
			pods[name], appended[name] = s, m.Appended
		}})
		if err != nil {
			return nil, err
		}
		now := k.now(ctx, appended)
		for _, name := range slices.Sorted(maps.Keys(pods)) {
			f.pods = append(f.pods, &pod{pods[name], max(now.Sub(appended[name]), 0)})
		}
		return f, nil
	})
}

// now is the brokers' time, as the newest record shows it: an owner's header of this moment. Where no owner lives, this
// machine's clock stands for it.
func (k *kafka) now(ctx context.Context, appended map[string]time.Time) time.Time {
	newest := time.Now()
	if o, err := k.ownerFacts(ctx); err == nil && !o.now.IsZero() {
		newest = o.now
	}
	for _, t := range appended {
		if t.After(newest) {
			newest = t
		}
	}
	return newest
}

// sidecars is the check sidecars.live.
func (c *Checks) sidecars(ctx context.Context) []checkup.Finding {
	f, err := c.kafka.fleet(ctx)
	if err != nil {
		return c.kafka.cannot(c.kafka.names().Status, mayRead, err)
	}
	fingerprint, known := c.Fingerprint(ctx)
	if !known {
		fingerprint, _ = c.fingerprint() // of the file that was given, if it can be read
	}
	return judgeSidecars(f, fingerprint)
}

// judgeSidecars: fingerprint is the installation's, 0: not known.
func judgeSidecars(f *fleet, fingerprint uint32) []checkup.Finding {
	var out []checkup.Finding
	if len(f.pods) == 0 && f.foreign == 0 {
		return []checkup.Finding{checkup.Warn("put it beside the services: label a namespace weirproxy.dev/inject=enabled and restart its pods, use weir inject, or start weir-sidecar by hand; has it the same kafka.topics?",
			"no sidecar has reported: nothing is counted")}
	}
	if names := naming(f.live(), func(p *pod) bool { return fingerprint != 0 && p.KeyFingerprint != fingerprint }); len(names) > 0 {
		out = append(out, checkup.Fail(sameKey+", then restart them", "%s %s another identity key, so all that they report is refused: %s",
			checkup.Many(len(names), "sidecar"), have(len(names)), checkup.Names(names)))
	}
	var silent []string
	for _, p := range f.pods {
		if p.stale() {
			silent = append(silent, fmt.Sprintf("%s (%s)", p.Pod, ageText(p.age)))
		}
	}
	if len(silent) > 0 {
		out = append(out, checkup.Warn("one that was killed is forgotten after 1h; one that still runs has lost Kafka, which its log and /readyz say",
			"%s silent for more than %v: %s", checkup.Many(len(silent), "sidecar"), statustopic.Stale, checkup.Names(silent)))
	}
	out = append(out, degraded(f)...)
	if f.foreign > 0 {
		out = append(out, checkup.Warn("find who writes there, and give the installation topics of its own", "the status topic has %s that are no sidecar's", checkup.Many(f.foreign, "record")))
	}
	return checkup.OrOkay(out, "%s live, ready, with the installation's identity key", checkup.Many(len(f.live()), "sidecar"))
}

func have(n int) string {
	if n == 1 {
		return "has"
	}
	return "have"
}

// degraded are the reasons that live sidecars give, each with who.
func degraded(f *fleet) []checkup.Finding {
	by := map[string][]string{}
	for _, p := range f.live() {
		if p.Ready && !p.Degraded {
			continue
		}
		state := "degraded"
		if !p.Ready {
			state = "not ready"
		}
		reasons := p.Reasons
		if len(reasons) == 0 {
			reasons = []string{"no reason given"}
		}
		for _, r := range reasons {
			by[state+": "+r] = append(by[state+": "+r], p.Pod)
		}
	}
	var out []checkup.Finding
	for _, text := range slices.Sorted(maps.Keys(by)) {
		out = append(out, checkup.Warn("until it is mended these decide with less than they should know, as each policy's failure mode says",
			"%s %s (%s)", checkup.Many(len(by[text]), "sidecar"), text, checkup.Names(by[text])))
	}
	return out
}

func naming(pods []*pod, is func(*pod) bool) []string {
	var out []string
	for _, p := range pods {
		if is(p) {
			out = append(out, p.Pod)
		}
	}
	return out
}

// versions is the check sidecars.versions.
func (c *Checks) versions(ctx context.Context) []checkup.Finding {
	f, err := c.kafka.fleet(ctx)
	if err != nil {
		return c.kafka.cannot(c.kafka.names().Status, mayRead, err)
	}
	return judgeVersions(f, c.cfg.Version)
}

// judgeVersions: own is this program's version, "": not known.
func judgeVersions(f *fleet, own string) []checkup.Finding {
	if len(f.live()) == 0 {
		return []checkup.Finding{checkup.Skip("", "no live sidecar")}
	}
	by := map[string][]string{}
	for _, p := range f.live() {
		by[p.ProgramVersion] = append(by[p.ProgramVersion], p.Pod)
	}
	var out []checkup.Finding
	if own == "" {
		return judgeVersionsAmong(by)
	}
	delete(by, own)
	for _, v := range slices.Sorted(maps.Keys(by)) {
		out = append(out, checkup.Warn("restart their workloads, so that they get the present sidecar; or use the weir of their version",
			"%s of version %q, this program is of %q: %s", checkup.Many(len(by[v]), "sidecar"), v, own, checkup.Names(by[v])))
	}
	return checkup.OrOkay(out, "all live sidecars are of this program's version, %s", own)
}

// judgeVersionsAmong compares the sidecars with each other.
func judgeVersionsAmong(by map[string][]string) []checkup.Finding {
	versions := slices.Sorted(maps.Keys(by))
	if len(versions) == 1 {
		return []checkup.Finding{checkup.Okay("all live sidecars are of version %s", versions[0])}
	}
	said := make([]string, len(versions))
	for i, v := range versions {
		said[i] = fmt.Sprintf("%q: %s", v, checkup.Names(by[v]))
	}
	return []checkup.Finding{checkup.Warn("restart the workloads of the older ones, so that they get the present sidecar", "sidecars are of several versions: %s", strings.Join(said, "; "))}
}

// withoutPolicy is the check sidecars.policies.
func (c *Checks) withoutPolicy(ctx context.Context) []checkup.Finding {
	f, err := c.kafka.fleet(ctx)
	if err != nil {
		return c.kafka.cannot(c.kafka.names().Status, mayRead, err)
	}
	p, err := c.kafka.policyFacts(ctx)
	if err != nil {
		return c.kafka.cannot(c.kafka.names().Policies, mayRead, err)
	}
	return judgeWithoutPolicy(f, p.set)
}

// judgeWithoutPolicy names live sidecars that no policy concerns: they allow everything.
func judgeWithoutPolicy(f *fleet, set *policy.Set) []checkup.Finding {
	by := map[string][]string{}
	for _, p := range f.live() {
		if len(set.ForTargets(p.Targets...)) == 0 {
			by[checkup.Names(p.Targets)] = append(by[checkup.Names(p.Targets)], p.Pod)
		}
	}
	var out []checkup.Finding
	for _, targets := range slices.Sorted(maps.Keys(by)) {
		out = append(out, checkup.Warn("apply a QuotaPolicy whose targetRefs name one of them, or a Service that selects these pods",
			"no policy for %s, so every request to %s is allowed: %s", orElse(targets, "pods without a target"), checkup.Many(len(by[targets]), "pod"), checkup.Names(by[targets])))
	}
	if len(f.live()) == 0 {
		return []checkup.Finding{checkup.Skip("", "no live sidecar")}
	}
	return checkup.OrOkay(out, "every live sidecar has a policy")
}
