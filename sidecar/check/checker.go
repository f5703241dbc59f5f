package check

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/internal/policy"
	"github.com/weirproxy/weir/internal/quota"
	"github.com/weirproxy/weir/sidecar/ledger"
	"github.com/weirproxy/weir/sidecar/match"
	"github.com/weirproxy/weir/sidecar/metrics"
)

// Config is what a Checker works with. All fields are required but MaxInFlight.
type Config struct {
	Ledger  *ledger.Ledger
	Metrics *metrics.Metrics
	// Clock is the pod's monotonic time. It must be later than a minute at its start: quota takes 0 for none.
	Clock func() quota.Time
	// Known says whether a record is known of a counter that has no slot.
	Known func(wirev1.ID) bool
	// MaxInFlight bounds the checks under way; 0: no bound.
	MaxInFlight int
}

// Checker answers requests. It is safe for concurrent use.
type Checker struct {
	config   Config
	snapshot atomic.Pointer[Snapshot]
	inFlight atomic.Int64
	scratch  sync.Pool
	prepare  []func(*Snapshot)
}

// New returns a checker that answers NotLoaded until Install.
func New(c Config) *Checker {
	k := &Checker{config: c}
	k.scratch.New = func() any {
		seed := rand.Uint64()
		return &scratch{rnd: quota.NewRand(seed), hint: uint32(seed)}
	}
	return k
}

// Prepare has f called with each snapshot before checks decide by it, on Install's goroutine. Call it before the first
// Install.
func (c *Checker) Prepare(f func(*Snapshot)) { c.prepare = append(c.prepare, f) }

// Install makes s what checks from now on decide by.
func (c *Checker) Install(s *Snapshot) {
	for _, f := range c.prepare {
		f(s)
	}
	c.snapshot.Store(s)
}

// Snapshot returns what is installed; nil: nothing yet.
func (c *Checker) Snapshot() *Snapshot { return c.snapshot.Load() }

// scratch is the memory of one check, used again by others.
type scratch struct {
	rnd     quota.Rand
	hint    uint32
	matched match.Result
	takes   []quota.Take
	outs    []quota.Outcome
	slots   []*ledger.Slot
	hits    []int  // which hit a take is of
	kept    uint64 // of quota.Cell.Touch

	// The target charged last, of snapshot of.
	target *Target
	of     *Snapshot
}

// targetOf finds a target, which is nearly always the one of the check before.
func (s *scratch) targetOf(snap *Snapshot, name string) *Target {
	if s.of != snap || s.target == nil || s.target.Name != name {
		s.of, s.target = snap, snap.Targets[name]
	}
	return s.target
}

func (s *scratch) reset() {
	s.takes, s.slots, s.hits = s.takes[:0], s.slots[:0], s.hits[:0]
}

func (s *scratch) outcomes() []quota.Outcome {
	if cap(s.outs) < len(s.takes) {
		s.outs = make([]quota.Outcome, 2*len(s.takes))
	}
	return s.outs[:len(s.takes)]
}

// one in sampling checks is timed
const sampling = 64

// Check decides on a request and charges it. req is read during the call only. It fails, rather than
// panics, whatever the request.
func (c *Checker) Check(req *match.Request, a *Answer) { c.CheckBy(c.snapshot.Load(), req, a) }

// CheckBy is Check by a snapshot that was read before, by which the request was read from its wire; nil: nothing was installed.
func (c *Checker) CheckBy(snap *Snapshot, req *match.Request, a *Answer) {
	*a = Answer{}
	defer c.finish(a)
	if n := c.inFlight.Add(1); c.config.MaxInFlight > 0 && n > int64(c.config.MaxInFlight) {
		a.Outcome = metrics.Overloaded
		return
	}
	if snap == nil {
		a.Outcome = metrics.NotLoaded
		return
	}
	s := c.scratch.Get().(*scratch)
	now := c.config.Clock()
	a.Random = s.rnd.Uint64()
	c.decide(now, snap, s, req, a)
	if a.Random%sampling == 0 {
		c.config.Metrics.Latency.Observe(time.Duration(c.config.Clock() - now).Seconds())
	}
	s.reset()
	c.scratch.Put(s)
}

func (c *Checker) finish(a *Answer) {
	c.inFlight.Add(-1)
	if p := recover(); p != nil {
		*a = Answer{Outcome: metrics.Failed}
	}
	c.config.Metrics.Check(a.Outcome)
}

func (c *Checker) decide(now quota.Time, snap *Snapshot, s *scratch, req *match.Request, a *Answer) {
	req.Random = s.rnd.Uint64()
	snap.Matcher.Match(req, &s.matched)
	if c.settled(snap, s, a) {
		return
	}
	pin := c.config.Ledger.Pin(s.hint)
	defer pin.Unpin()
	if !c.take(snap, s) {
		a.Outcome = metrics.Uncounted
	}
	if len(s.takes) == 0 {
		return
	}
	outs := s.outcomes()
	r := quota.Decide(now, s.takes, &s.rnd, outs)
	c.mark(s, outs, r)
	c.answer(snap, s, outs, r, a)
}

// settled answers what needs no counter.
func (c *Checker) settled(snap *Snapshot, s *scratch, a *Answer) bool {
	m := &s.matched
	switch {
	case m.Refused != nil:
		a.Outcome, a.Policy, a.Limit = metrics.RefusedClient, m.Refused.Policy, m.Refused
		snap.Limits[m.Refused].Refused.Inc()
	case m.NoPolicy:
		a.Outcome = metrics.NoPolicy
	case len(m.Hits) == 0:
		a.Outcome = metrics.NoLimit
	default:
		return false
	}
	return true
}

// take finds the slot of every hit. It reports false if one has no room at all: the request passes
// that limit uncounted.
func (c *Checker) take(snap *Snapshot, s *scratch) (all bool) {
	all = true
	group := 0
	for i := range s.matched.Hits {
		h := &s.matched.Hits[i]
		t := s.targetOf(snap, h.Target)
		if i > 0 && (s.matched.Hits[i-1].Limit != h.Limit || s.matched.Hits[i-1].Target != h.Target) {
			group++
		}
		slot, rule := c.config.Ledger.Lookup(h.ID), h.Rule
		if slot == nil {
			slot, rule = c.make(snap, t, h)
		}
		if slot == nil {
			all = false
			continue
		}
		s.kept ^= slot.Cell.Touch()
		s.takes = append(s.takes, quota.Take{
			Cell: slot.Cell, Rule: rule, Fresh: t.Fresh, Fleet: t.Fleet,
			Cost: h.Cost, Enforced: h.Enforced, Group: group,
		})
		s.slots = append(s.slots, slot)
		s.hits = append(s.hits, i)
	}
	return all
}

// make gives a counter its slot, or the limit's overflow counter where the owner says that the limit is
// in overflow, or the ledger is full. rule is the amount of the counter charged.
func (c *Checker) make(snap *Snapshot, t *Target, h *match.Hit) (slot *ledger.Slot, rule *quota.Rule) {
	limit := snap.Names[h.Limit]
	key := ledger.Key{
		ID: h.ID, Identity: h.Identity, Limit: limit, Target: t.Name, Partition: t.Partition,
		Rule: h.Rule, Fresh: t.Fresh, Fleet: t.Fleet,
	}
	if h.Overflow == nil { // one counter for the whole limit: as few as an overflow counter
		key.Overflow = true
		return c.config.Ledger.Make(key), h.Rule
	}
	if !t.Overflows(limit) || c.config.Known(h.ID) {
		if slot := c.config.Ledger.Make(key); slot != nil {
			return slot, h.Rule
		}
	}
	key.ID, key.Identity, key.Overflow = h.Overflow.ID, h.Overflow.Identity, true
	key.Rule = h.Rate.Rule
	if slot := c.config.Ledger.Lookup(key.ID); slot != nil {
		return slot, key.Rule
	}
	return c.config.Ledger.Make(key), key.Rule
}

// mark tells the control goroutine which counters were charged.
func (c *Checker) mark(s *scratch, outs []quota.Outcome, r quota.Result) {
	for i := range s.takes {
		if charged := r.OK || s.takes[i].Enforced && !outs[i].OK; charged && s.takes[i].Cost > 0 {
			c.config.Ledger.MarkDirty(s.slots[i])
		}
	}
	if r.Urgent {
		c.config.Ledger.MarkUrgent()
	}
}

func (c *Checker) answer(snap *Snapshot, s *scratch, outs []quota.Outcome, r quota.Result, a *Answer) {
	shown := r.Refused
	if r.OK {
		shown = tightest(s.takes, outs)
	} else {
		a.Outcome = metrics.Refused
	}
	if shown >= 0 {
		h, o := &s.matched.Hits[s.hits[shown]], &outs[shown]
		a.Limit, a.Rate, a.Rule, a.Policy = h.Limit, h.Rate, s.takes[shown].Rule, h.Limit.Policy
		a.Remaining, a.Reset, a.RetryAfter = o.Remaining, o.Reset, o.RetryAfter
	}
	if !r.OK {
		a.Remaining = 0 // what is left is other pods' share, and nothing of it is this caller's now
		a.Rate = RateOf(a.Limit, a.Rate, a.Rule)
		snap.Limits[a.Limit].Refused.Inc()
		return
	}
	c.shadow(snap, s, outs, a)
}

// shadow counts the limits that would have refused, each once, and shows the first.
func (c *Checker) shadow(snap *Snapshot, s *scratch, outs []quota.Outcome, a *Answer) {
	group := -1
	for i := range s.takes {
		if s.takes[i].Enforced || outs[i].OK || s.takes[i].Group == group {
			continue
		}
		group = s.takes[i].Group
		h := &s.matched.Hits[s.hits[i]]
		snap.Limits[h.Limit].WouldRefuse.Inc()
		if a.WouldRefuse == nil {
			a.WouldRefuse = h.Rate
		}
	}
}

// RateOf is the rate that a rule was compiled from: the limit's own, or an override's, whose title says
// what was in force.
func RateOf(l *policy.Limit, own *policy.Rate, rule *quota.Rule) *policy.Rate {
	if own.Rule == rule {
		return own
	}
	for _, o := range l.Overrides {
		if own.Index < len(o.Rates) && o.Rates[own.Index] != nil && o.Rates[own.Index].Rule == rule {
			return o.Rates[own.Index]
		}
	}
	return own
}

// tightest is the enforced rate with the smallest part left; -1 if none is enforced.
func tightest(takes []quota.Take, outs []quota.Outcome) int {
	found, least := -1, 0.0
	for i := range takes {
		if !takes[i].Enforced {
			continue
		}
		if part := float64(outs[i].Remaining) / takes[i].Rule.Amount(); found < 0 || part < least {
			found, least = i, part
		}
	}
	return found
}
