package installation

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/weirproxy/weir/aggregator/policies"
	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/internal/bus"
	"github.com/weirproxy/weir/internal/checkup"
	"github.com/weirproxy/weir/internal/policy"
	"github.com/weirproxy/weir/internal/policytopic"
	"github.com/weirproxy/weir/internal/quota"
)

// policyFacts are what the policy topic holds.
type policyFacts struct {
	set          *policy.Set
	problems     []policies.Problem
	installation *wirev1.Installation
	foreign      int // records that are none of weir's
}

func (k *kafka) policyFacts(ctx context.Context) (*policyFacts, error) {
	return k.policies.get(ctx, func(ctx context.Context) (*policyFacts, error) {
		book, foreign := policies.NewBook(), 0
		err := k.read(ctx, whole{topic: k.names().Policies, from: map[int32]bus.From{0: {}}, handle: func(m bus.Message, _ bool) {
			if _, err := book.Apply(m); err != nil && !ours(m.Key) {
				foreign++
			}
		}})
		if err != nil {
			return nil, err
		}
		return &policyFacts{set: book.Set(), problems: book.Problems(), installation: book.Installation(), foreign: foreign}, nil
	})
}

func ours(key []byte) bool {
	_, err := policy.ParseKey(string(key))
	return err == nil || string(key) == policytopic.InstallationKey
}

// needs are what the limits of all policies ask of Kafka and Redis.
type needs struct {
	// long is a limit whose window is an hour or more, calendar one that counts over a calendar's period, as
	// namespace/policy/limit; "": there is none.
	long, calendar string
	// read: the policies were read.
	read bool
}

func needsOf(set *policy.Set) needs {
	n := needs{read: true}
	for _, p := range set.Policies() {
		for _, l := range p.Limits {
			for _, r := range l.Rates {
				name := p.Name + "/" + l.Name
				if r.Rule.Algorithm == quota.Calendar {
					n.calendar, n.long = orElse(n.calendar, name), orElse(n.long, name)
				}
				if r.Rule.Window >= hour {
					n.long = orElse(n.long, name)
				}
			}
		}
	}
	return n
}

func orElse(s, fallback string) string {
	if s == "" {
		return fallback
	}
	return s
}

// valid is the check policies.valid.
func (c *Checks) valid(ctx context.Context) []checkup.Finding {
	p, err := c.kafka.policyFacts(ctx)
	if err != nil {
		return c.kafka.cannot(c.kafka.names().Policies, mayRead, err)
	}
	f, err := c.kafka.fleet(ctx)
	if err != nil {
		f = &fleet{} // what sidecars say of policies is a part of it only; sidecars.live says why it is missing
	}
	return judgeValid(p, f)
}

func judgeValid(p *policyFacts, f *fleet) []checkup.Finding {
	var out []checkup.Finding
	for _, bad := range slices.SortedFunc(slices.Values(p.problems), func(a, b policies.Problem) int {
		return compareText(a.Key.String(), b.Key.String())
	}) {
		out = append(out, checkup.Fail("correct it and apply it again; its last good version stays in force", "policy %s: version %d is invalid: %v", bad.Key, bad.Version, bad.Err))
	}
	out = append(out, refusals(f)...)
	for _, c := range p.set.Conflicts() {
		out = append(out, checkup.Warn("delete all but one: of kube kubectl delete, of file the file, of cli weir apply --delete -f FILE",
			"policy %s is defined by several origins: %s is in force, not %s", c.Name, c.InForce, joined(c.Ignored)))
	}
	if p.foreign > 0 {
		out = append(out, checkup.Warn("find who writes there, and give the installation a topic of its own", "the policy topic has %s that are none of weir's", checkup.Many(p.foreign, "record")))
	}
	return checkup.OrOkay(out, "%s, all valid", checkup.Many(len(p.set.Policies()), "policy"))
}

func joined(keys []policy.Key) string {
	names := make([]string, len(keys))
	for i, k := range keys {
		names[i] = k.String()
	}
	return checkup.Names(names)
}

// refusals are versions that sidecars would not take, each with who.
func refusals(f *fleet) []checkup.Finding {
	by := map[string][]string{}
	for _, pod := range f.live() {
		for _, a := range pod.Policies {
			if a.Error != "" {
				text := fmt.Sprintf("policy %s: version %d is refused by sidecars: %s", a.Key, a.Seen, a.Error)
				by[text] = append(by[text], pod.Pod)
			}
		}
	}
	var out []checkup.Finding
	for _, text := range slices.Sorted(maps.Keys(by)) {
		out = append(out, checkup.Fail("correct the policy, or, where this program finds it valid, bring the sidecars to this program's version", "%s (%s)", text, checkup.Names(by[text])))
	}
	return out
}

// inForce is the check policies.in-force.
func (c *Checks) inForce(ctx context.Context) []checkup.Finding {
	p, err := c.kafka.policyFacts(ctx)
	if err != nil {
		return c.kafka.cannot(c.kafka.names().Policies, mayRead, err)
	}
	f, err := c.kafka.fleet(ctx)
	if err != nil {
		return c.kafka.cannot(c.kafka.names().Status, mayRead, err)
	}
	return judgeInForce(p.set, f)
}

// judgeInForce says which policies are enforced by fewer than all live sidecars of their targets.
func judgeInForce(set *policy.Set, f *fleet) []checkup.Finding {
	var out []checkup.Finding
	for _, p := range set.Policies() {
		out = append(out, judgeOne(p, f)...)
	}
	if len(set.Policies()) == 0 {
		return []checkup.Finding{checkup.Warn("kubectl apply or weir apply -f FILE one", "there is no policy: every request is allowed")}
	}
	return checkup.OrOkay(out, "%s, each in force in every live sidecar of its targets", checkup.Many(len(set.Policies()), "policy"))
}

func judgeOne(p *policy.Policy, f *fleet) []checkup.Finding {
	var out []checkup.Finding
	total, behind := 0, []string{}
	for _, t := range p.Targets {
		if len(f.having(t.Name)) == 0 {
			out = append(out, checkup.Warn("is the target's name right, and do its pods have the sidecar? In Kubernetes: label the namespace weirproxy.dev/inject=enabled and restart the pods",
				"policy %s: no live sidecar has its target %s", p.Key, t.Name))
		}
	}
	for _, pod := range f.live() {
		if !pod.hasAny(p.Targets) {
			continue
		}
		total++
		if why := pod.lacks(p); why != "" {
			behind = append(behind, pod.Pod+" ("+why+")")
		}
	}
	if len(behind) > 0 {
		out = append(out, checkup.Fail("a sidecar takes a version up within a second; where it does not, its log and /readyz say why",
			"policy %s: %d of %s enforce version %d; not %s", p.Key, total-len(behind), checkup.Many(total, "live sidecar"), p.Version, checkup.Names(behind)))
	}
	return out
}

// hasAny reports whether the pod has one of the targets.
func (p *pod) hasAny(targets []policy.Target) bool {
	return slices.ContainsFunc(targets, func(t policy.Target) bool { return slices.Contains(p.Targets, t.Name) })
}

// lacks says why a policy's version is not in force in the pod; "" where it is, or a later one.
func (p *pod) lacks(want *policy.Policy) string {
	for _, a := range p.Policies {
		switch {
		case a.Key != want.Key.String():
		case a.Version >= want.Version:
			return ""
		case a.Error != "":
			return "refused"
		case a.Version < 0:
			return "none in force"
		default:
			return fmt.Sprintf("has version %d", a.Version)
		}
	}
	return "does not know it"
}

func compareText(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// ageText is an age for people.
func ageText(d time.Duration) string {
	if d < time.Minute {
		return d.Round(time.Second).String()
	}
	return d.Round(time.Minute).String()
}
