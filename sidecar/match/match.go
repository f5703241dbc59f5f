package match

import (
	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/internal/policy"
	"github.com/weirproxy/weir/internal/quota"
)

// Hit is one counter that a request is to be charged to.
type Hit struct {
	Target string // canonical name
	Limit  *policy.Limit
	Rate   *policy.Rate
	// Rule is the amount in force for this counter: the rate's own, or an override's.
	Rule *quota.Rule
	ID   wirev1.ID
	// Identity is the canonical encoding of the counter's identity, in the Result's memory: copy it to keep it.
	Identity []byte
	// Overflow is the counter to charge where this one has no room; nil where there is no other.
	Overflow *Overflow
	// Cost is what the request charges, units. It may be 0.
	Cost uint64
	// Enforced: a refusal of this counter refuses the request. Otherwise it is only reported.
	Enforced bool
}

// Result is what Match found, with its memory: use one Result for many requests, one at a time. The
// zero value is ready.
type Result struct {
	// Hits in the order of targets, policies (by name), limits and rates.
	Hits []Hit
	// NoPolicy: no policy is attached to any of the request's targets, or it names an unknown one.
	NoPolicy bool
	// Refused is the first enforced limit whose policy refuses the request because it yields no
	// client; nil: none. Hits are not to be charged then.
	Refused *policy.Limit
	// RefusedTarget is the target that Refused was met for.
	RefusedTarget string

	scan   scan
	client client
	ids    []byte // identities
}

func (r *Result) reset(req *Request) {
	clear(r.Hits) // policies that are gone must not stay in memory
	r.Hits = r.Hits[:0]
	r.NoPolicy, r.Refused, r.RefusedTarget = false, nil, ""
	r.ids = r.ids[:0]
	r.scan.reset(req)
}

// hit adds one, to be filled in where it lies.
func (r *Result) hit() *Hit {
	n := len(r.Hits)
	if n < cap(r.Hits) {
		r.Hits = r.Hits[:n+1]
	} else {
		r.Hits = append(r.Hits, Hit{})
	}
	return &r.Hits[n]
}

// Match finds the counters of a request. res is overwritten; it holds what it found until the next
// Match with it, and req must not change until then.
func (m *Matcher) Match(req *Request, res *Result) {
	res.reset(req)
	if req.Target != "" {
		t, ok := m.named[req.Target]
		res.NoPolicy = !ok || len(t.policies) == 0
		if ok {
			m.target(t, res)
		}
		return
	}
	res.NoPolicy = true
	for _, t := range m.own {
		res.NoPolicy = res.NoPolicy && len(t.policies) == 0
		m.target(t, res)
	}
}

func (m *Matcher) target(t *target, res *Result) {
	for i := range t.policies {
		b := &t.policies[i]
		if res.scan.excluded(b.policy.Exclude) {
			continue
		}
		if b.needClient {
			findClient(&res.scan, b.sources, &res.client)
		}
		for j := range b.limits {
			m.limit(t, &b.limits[j], res)
		}
	}
}

func (m *Matcher) limit(t *target, b *boundLimit, res *Result) {
	l := b.limit
	endpoint, applies := l.When.Matches(&res.scan)
	if !applies {
		return
	}
	enforced := m.enforced(l, res)
	if b.byClient && !res.client.found {
		switch l.Policy.UnknownClients {
		case policy.UnknownExempt:
			return
		case policy.UnknownRefuse:
			if enforced && res.Refused == nil {
				res.Refused, res.RefusedTarget = l, t.name
			}
			return
		case policy.UnknownShared:
		}
	}
	m.charge(t, b, endpoint, enforced, res)
}

// charge adds a hit for each rate that applies.
func (m *Matcher) charge(t *target, b *boundLimit, endpoint string, enforced bool, res *Result) {
	l := b.limit
	cost := res.scan.cost(&l.Cost)
	var client []wirev1.Dimension
	if b.byClient && res.client.found {
		client = res.client.dimension[:]
	}
	var dims []byte // once found, for the next rate
	for i := range b.rates {
		r := &b.rates[i]
		rule, unlimited := l.Amount(i, client)
		if unlimited {
			continue
		}
		id, identity := r.whole, r.prefix
		if len(b.dimensions) > 0 {
			from := len(res.ids)
			res.ids = append(res.ids, r.prefix...)
			at := len(res.ids)
			if dims == nil {
				res.ids = b.appendDimensions(res.ids, endpoint, res)
				dims = res.ids[at:]
			} else {
				res.ids = append(res.ids, dims...)
			}
			identity = res.ids[from:]
			id = r.hash.ID(dims)
		}
		h := res.hit()
		h.Target, h.Limit, h.Rate, h.Rule = t.name, l, r.rate, rule
		h.ID, h.Identity, h.Overflow = id, identity, r.overflow
		h.Cost, h.Enforced = cost, enforced
	}
}

// enforced reports whether the limit's refusals count for this request: for the same clients each
// time, or by chance where the request yields none.
func (m *Matcher) enforced(l *policy.Limit, res *Result) bool {
	if l.Mode != policy.Enforce {
		return false
	}
	if l.EnforcePercent >= 100 {
		return true
	}
	lot := res.scan.req.Random
	if res.client.found {
		lot = m.keys.ID(res.client.encoded).Lo
	}
	const parts = 10_000
	return float64(lot%parts) < l.EnforcePercent*(parts/100)
}
