package agent

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"time"

	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/internal/explain"
	"github.com/weirproxy/weir/internal/quota"
	"github.com/weirproxy/weir/sidecar/check"
	"github.com/weirproxy/weir/sidecar/match"
	"github.com/weirproxy/weir/sidecar/metrics"
)

// Explain says what a check would answer to a request now, and why. It charges nothing and makes no
// slot. It fails when ctx ends, the agent has stopped (ErrStopped), or the request makes no sense.
func (a *Agent) Explain(ctx context.Context, r explain.Request) (explain.Response, error) {
	req, err := requestOf(r)
	if err != nil {
		return explain.Response{}, err
	}
	return ask(ctx, a, func() explain.Response { return a.explain(req) })
}

func requestOf(r explain.Request) (*match.Request, error) {
	req := &match.Request{
		Method: orDefault(r.Method, "GET"), Path: orDefault(r.Path, "/"), Host: r.Host,
		Principal: r.Principal, Target: r.Target, Random: rand.Uint64(),
		Headers: match.Headers{Joined: map[string]string{}},
	}
	for name, values := range r.Headers {
		req.Headers.Joined[strings.ToLower(name)] = strings.Join(values, ",")
	}
	if len(r.Claims) > 0 {
		req.Claims = claims(r.Claims)
	}
	if r.RemoteAddress != "" {
		peer, err := netip.ParseAddr(r.RemoteAddress)
		if err != nil {
			return nil, fmt.Errorf("remoteAddress %q: want an IP address", r.RemoteAddress)
		}
		req.Peer = peer
	}
	return req, nil
}

func orDefault(s, fallback string) string {
	if s == "" {
		return fallback
	}
	return s
}

// claims of a request to explain.
type claims map[string]string

// Claim implements match.Claims.
func (c claims) Claim(name string) (string, bool) { v, ok := c[name]; return v, ok }

func (a *Agent) explain(req *match.Request) explain.Response {
	state := a.health.get()
	out := explain.Response{Targets: []string{}, Counters: []explain.Counter{}, Degraded: state.Texts()}
	snap := a.checker.Snapshot()
	if snap == nil {
		out.Outcome = metrics.NotLoaded.String()
		return out
	}
	var found match.Result
	snap.Matcher.Match(req, &found)
	out.Targets = append(out.Targets, targetsOf(snap.Matcher, req)...)
	switch {
	case found.Refused != nil:
		out.Outcome, out.Status = metrics.RefusedClient.String(), found.Refused.Policy.Response.Status
		out.RefusedBy = check.LimitName(found.Refused)
		return out
	case found.NoPolicy:
		out.Outcome, out.Allowed = metrics.NoPolicy.String(), true
		return out
	case len(found.Hits) == 0:
		out.Outcome, out.Allowed = metrics.NoLimit.String(), true
		return out
	}
	a.preview(snap, found.Hits, &out)
	return out
}

func targetsOf(m *match.Matcher, req *match.Request) []string {
	if req.Target != "" {
		return []string{req.Target}
	}
	return m.Targets()
}

// preview judges the hits as a check would.
func (a *Agent) preview(snap *check.Snapshot, hits []match.Hit, out *explain.Response) {
	now := a.now()
	a.takeMade(now)
	pin := a.ledger.Pin(0)
	defer pin.Unpin()
	views := make([]counterView, len(hits))
	takes := make([]quota.Take, len(hits))
	for i := range hits {
		views[i] = a.view(snap.Targets[hits[i].Target], &hits[i], now)
		takes[i] = quota.Take{
			Cell: views[i].counter.Cell(), Rule: views[i].rule, Fresh: views[i].target.Fresh, Fleet: views[i].target.Fleet,
			Cost: hits[i].Cost, Enforced: hits[i].Enforced, Group: i,
		}
		if i > 0 && hits[i].Limit == hits[i-1].Limit && hits[i].Target == hits[i-1].Target {
			takes[i].Group = takes[i-1].Group
		}
	}
	outcomes := make([]quota.Outcome, len(hits))
	r := quota.Preview(now, takes, &a.rnd, outcomes)
	out.Allowed, out.Outcome = r.OK, metrics.Allowed.String()
	if !r.OK {
		out.Outcome = metrics.Refused.String()
		out.RefusedBy = check.LimitName(hits[r.Refused].Limit)
		out.Status = hits[r.Refused].Limit.Policy.Response.Status
	}
	for i := range hits {
		out.Counters = append(out.Counters, views[i].explained(&hits[i], &outcomes[i], now))
	}
}

// counterView is a counter to explain: one with a slot, or what a new slot would begin as.
type counterView struct {
	counter  *quota.Counter
	rule     *quota.Rule
	target   *check.Target
	id       wirev1.ID
	overflow bool
}

func (a *Agent) view(t *check.Target, h *match.Hit, now quota.Time) counterView {
	v := counterView{rule: h.Rule, target: t, id: h.ID}
	if s := a.ledger.Find(h.ID); s != nil {
		v.counter = s.Counter
		return v
	}
	_, known := a.known.Get(h.ID)
	slots, _ := a.ledger.Size()
	if h.Overflow != nil && (t.Overflows(check.LimitName(h.Limit)) && !known || slots >= a.ledger.Capacity()) {
		v.overflow, v.id, v.rule = true, h.Overflow.ID, h.Rate.Rule
		if s := a.ledger.Find(v.id); s != nil {
			v.counter = s.Counter
			return v
		}
	}
	v.counter = new(quota.Counter)
	v.counter.Init(new(quota.Cell), v.rule, t.Fresh, t.Fleet, 0, now)
	if r, ok := a.known.Get(v.id); ok && a.hears(t.Partition) {
		v.counter.Apply(r.Header, r.Record, now, &a.rnd)
	}
	return v
}

func (a *Agent) hears(partition int32) bool {
	h := a.hearings[partition]
	return h != nil && h.live
}

func (v *counterView) explained(h *match.Hit, o *quota.Outcome, now quota.Time) explain.Counter {
	p := h.Limit.Policy
	c := explain.Counter{
		Target: h.Target, Policy: p.Name, PolicyVersion: p.Version, Limit: h.Limit.Name,
		Rate: check.RateOf(h.Limit, h.Rate, v.rule).Title, Mode: "Enforce",
		ID: v.id.String(), CountedBy: countedBy(h.Identity), Overflow: v.overflow,
		Cost: float64(h.Cost), OK: o.OK, Basis: basis(o.Basis), Amount: v.rule.Amount(),
		Remaining: float64(o.Remaining), RetryAfterMS: ms(o.RetryAfter), ResetMS: ms(o.Reset),
	}
	if !h.Enforced {
		c.Mode = "Shadow"
	}
	state := v.counter.State(now)
	c.Share = &state.Share
	if _, r, ok := v.counter.Record(); ok {
		total := max(r.Content, 0) + max(state.Unincluded, 0)
		c.Total = &total
	}
	if age, ok := v.target.Fresh.Age(now); ok {
		value := ms(max(age, 0))
		c.DecisionAgeMS = &value
	}
	return c
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// basis in the words of explain.Counter.
func basis(b quota.Basis) string {
	switch b {
	case quota.BasisCold:
		return "Cold"
	case quota.BasisDecision:
		return "Decision"
	case quota.BasisFallback:
		return "Fallback"
	case quota.BasisFailureMode:
		return "FailureMode"
	default:
		return "None"
	}
}
