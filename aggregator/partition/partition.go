package partition

import (
	"slices"

	"github.com/weirproxy/weir/aggregator/store"
	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/internal/policy"
	"github.com/weirproxy/weir/internal/quota"
)

// Partition is the state of one owned partition. It is not safe for concurrent use: one goroutine
// owns it from claim to loss. Times `now` are one monotonic clock's and must not go back.
type Partition struct {
	cfg   Config
	start store.Record // what the store held at the claim
	clock clock

	live      bool
	liveSince quota.Time
	stopped   error
	watermark int64
	appended  quota.Millis // append time of the watermark's record
	unsaid    quota.Millis // that of the oldest report since the newest header; 0: none

	policies *policy.Set
	targets  map[string]*target
	counters map[wirev1.ID]*counter
	all      []*counter // the same, for walking
	folded   map[wirev1.ID]*counter
	limits   map[limitKey]*limit
	metered  []*counter // those with a meter
	settleAt quota.Time
	pods     pods
	report   report

	waiting int        // entries of all counters
	waiters []*counter // counters that wait, those of the lowest offset first
	toLoad  []wirev1.ID
	loading int // asked for and not answered
	drained bool
	wanted  []*counter

	schedule schedule
	cursor   int
	hot      int
	urgent   bool
	out      out
	sink     sink

	stats Stats
}

// New starts a claimed partition: before is the store's record from before the claim (store.Claim).
// Feed it usage from Replay's start on.
func New(cfg Config, before store.Record, now quota.Time) *Partition {
	cfg = cfg.withDefaults()
	if before.LogID != cfg.Owner.LogID {
		before.Offset, before.Appended, before.Clean = -1, 0, false
	}
	p := &Partition{
		cfg: cfg, start: before, watermark: -1,
		targets: map[string]*target{}, counters: map[wirev1.ID]*counter{}, folded: map[wirev1.ID]*counter{},
		limits: map[limitKey]*limit{},
		pods:   pods{byName: map[podKey]*pod{}},
	}
	p.out = newOut(&p.cfg, now)
	p.sink = sink{stored: before.Offset, storedAppended: quota.Millis(before.Appended), next: now}
	return p
}

// Stopped returns why this owner must stop (a newer claim, or a fenced flush); nil while it need not.
func (p *Partition) Stopped() error { return p.stopped }

// Live reports whether the own claim has been read back, so that headers go out.
func (p *Partition) Live() bool { return p.live }

// Stats returns the counts so far.
func (p *Partition) Stats() Stats { return p.stats }

// Gauges returns how things are at now.
func (p *Partition) Gauges(now quota.Time) Gauges {
	over := 0
	for _, t := range p.targets {
		if len(t.overflow) > 0 {
			over++
		}
	}
	return Gauges{
		Live: p.live, Watermark: p.watermark, Stored: p.sink.stored, OwnerTime: int64(p.clock.now(now)),
		Counters: len(p.counters), Hot: p.hot, Waiting: p.waiting, Loading: p.loading + len(p.toLoad),
		Dirty: len(p.sink.dirty), Targets: len(p.targets), Overflowing: over, Pods: len(p.pods.byName),
		WantedTexts: len(p.wanted), StoreAway: p.sink.failures > 0,
	}
}

// Backlogged reports that so much waits for the store that no more should be read for now. While the
// store is away, an owner that decides reads on: else new keys would freeze all others' totals. What finds
// no room then is dropped and counted.
func (p *Partition) Backlogged() bool {
	return p.loading+len(p.toLoad) > 0 && p.waiting > p.cfg.MaxWaiting/2 && (!p.live || !p.sink.unreadable)
}

// SetPolicies takes a new snapshot. Counters whose policy changed are resolved anew at once.
func (p *Partition) SetPolicies(s *policy.Set, now quota.Time) {
	p.policies = s
	for _, c := range slices.Clone(p.all) {
		p.resolveAgain(c, now)
	}
	p.keepLimits(s)
}

// SetLive takes the live pods of targets; a target that is not named has none.
func (p *Partition) SetLive(live map[string]int) {
	for name, n := range live {
		if wirev1.Partition(name, p.cfg.Partitions) == p.cfg.Owner.Partition {
			if t := p.target(name); t != nil {
				p.setLive(t, n)
			}
		}
	}
	for name, t := range p.targets {
		if _, ok := live[name]; !ok {
			p.setLive(t, 0)
		}
	}
}
