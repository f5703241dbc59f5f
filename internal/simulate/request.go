package simulate

import (
	"net/netip"
	"strconv"
	"time"

	"github.com/weirproxy/weir/internal/policy"
	"github.com/weirproxy/weir/internal/simulate/measure"
	"github.com/weirproxy/weir/internal/simulate/scenario"
	"github.com/weirproxy/weir/sidecar/check"
	"github.com/weirproxy/weir/sidecar/match"
)

// request is what one client of a source sends.
type request struct{ match.Request }

// newRequest names the client by the policy's first source of clients.
func newRequest(p *policy.Policy, s *scenario.Source, client string) request {
	r := match.Request{Method: s.Method, Path: s.Path, Headers: match.Headers{Joined: map[string]string{}}}
	if r.Method == "" {
		r.Method = "GET"
	}
	if r.Path == "" {
		r.Path = "/"
	}
	for name, v := range s.Headers {
		r.Headers.Joined[name] = v
	}
	if len(p.Client) > 0 && client != "" {
		switch c := &p.Client[0]; c.Kind {
		case policy.SourceHeader:
			r.Headers.Joined[c.Name] = client
		case policy.SourceRemoteAddress:
			r.Peer, _ = netip.ParseAddr(client)
		case policy.SourcePrincipal:
			r.Principal = client
		case policy.SourceJWTClaim:
			r.Claims = claims{c.Name: client}
		}
	}
	if s.Cost > 0 {
		for _, l := range p.Limits {
			if l.Cost.Header != "" {
				r.Headers.Joined[l.Cost.Header] = strconv.FormatUint(s.Cost, 10)
			}
		}
	}
	return request{r}
}

type claims map[string]string

// Claim implements match.Claims.
func (c claims) Claim(name string) (string, bool) {
	v, ok := c[name]
	return v, ok
}

// asker sends the requests of one source to one pod.
type asker struct {
	src    *source
	probe  *check.Probe
	client int // matched last; -1: none yet
	charge []charge
}

// charge is one counter of the request, with what measures it.
type charge struct {
	meter    *measure.Meter
	cost     uint64
	enforced bool
}

func (p *pod) asker(s *source, client int) *asker {
	a := p.askers[s.index]
	if a == nil {
		a = &asker{src: s, probe: p.agent.Checker().Probe(p.w.rng.Uint64()), client: -1}
		p.askers[s.index] = a
	}
	if a.client != client || a.probe.Stale() {
		a.match(p.w, client)
	}
	return a
}

func (a *asker) match(w *world, client int) {
	a.client = client
	a.probe.Match(&a.src.asks[client].Request)
	a.charge = a.charge[:0]
	hits := a.probe.Hits()
	for i := range hits {
		h := &hits[i]
		a.charge = append(a.charge, charge{w.judges.of(h), h.Cost, h.Enforced})
	}
}

// ask sends one request and has its answer measured.
func (a *asker) ask(w *world, at time.Duration, p *pod, index int) {
	passes := a.probe.Check()
	exact := true
	for i := range a.charge {
		if c := &a.charge[i]; c.enforced && c.cost > 0 {
			exact = c.meter.Exact(at, c.cost) && exact
		}
	}
	a.src.tally.Offered++
	if !passes {
		a.src.tally.Refused++
	}
	if !exact {
		a.src.tally.ExactRefused++
	}
	for i := range a.charge {
		c := &a.charge[i]
		if c.cost == 0 {
			continue
		}
		answer, would := measure.Admitted, exact
		switch {
		case !c.enforced:
			would = exact && c.meter.Exact(at, c.cost)
			if !passes {
				answer = measure.RefusedElsewhere
			} else if a.probe.Refused(i) {
				answer = measure.Refused
			}
		case !passes && a.probe.Refused(i):
			answer = measure.Refused
		case !passes:
			answer = measure.RefusedElsewhere
		}
		c.meter.Offer(at, index, c.cost, would, answer)
		if answer == measure.Admitted && w.hooks.charged != nil {
			if id, ok := a.probe.Charged(i); ok {
				w.hooks.charged(p, id, c.cost)
			}
		}
	}
}
