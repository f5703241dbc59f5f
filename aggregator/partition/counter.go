package partition

import (
	"time"

	"github.com/weirproxy/weir/aggregator/store"
	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/internal/quota"
)

// phase of a counter's life at its owner.
type phase uint8

const (
	loading phase = iota // its stored state has been asked for
	wanting              // not stored, and no report brought its identity yet
	parked               // no policy in force has it; entries wait a while for one
	exempt               // an override makes it unlimited: not counted
	live
	gone // evicted
)

// counter is one counter at its owner.
type counter struct {
	id       wirev1.ID
	target   *target
	identity []byte // canonical; nil until known
	policy   string // namespace/name, once resolved
	limit    *limit // nil until resolved with a rate
	meter    meter  // nil: not nearly full
	version  int64  // of the policy that it was resolved with
	total    *quota.Total
	saved    []store.Field // loaded, until there is a total
	maxRate  float64       // units/s that one pod may plausibly admit
	fresh    float64       // units since it was decided last

	// countAfter: entries at or below this offset are in the stored state and only set `last`.
	countAfter int64
	waiting    []waiter
	index      int        // in Partition.all
	since      quota.Time // when the oldest waiting entry came
	seen       quota.Time // when the newest entry came
	asked      quota.Time // when its text was last asked for; 0: never

	phase         phase
	listed        bool // in Partition.waiters
	active        bool // in schedule.due
	wheeled       bool // in schedule.wheel
	decided       bool // at least once
	folds         bool // it takes in keys of a full target
	dirty, whole  bool
	flying        bool  // in the flush in flight
	dirtyFrom     int64 // first offset that the store lacks
	dirtyAppended quota.Millis
	written       quota.Time
}

// waiter is an entry put aside. Where entries were joined, first is the offset of the first of them.
type waiter struct {
	quota.Usage
	first         int64
	firstAppended quota.Millis
}

// count takes an entry into the counter's total.
func (p *Partition) count(c *counter, u *quota.Usage, now quota.Time) {
	p.countFrom(c, u, u.Offset, u.Appended, now)
}

func (p *Partition) countFrom(c *counter, u *quota.Usage, first int64, appended quota.Millis, now quota.Time) {
	if err := u.Check(c.maxRate); err != nil {
		p.stats.Implausible++
		return
	}
	increase, urgent := c.total.Ingest(u, u.Offset > c.countAfter)
	if increase > 0 {
		p.stats.Units += float64(increase)
		p.markDirty(c, first, appended)
	}
	p.metering(c, u, increase, now)
	c.fresh += float64(increase)
	urgent = urgent || c.front()
	p.urgent = p.urgent || urgent && p.live
	if urgent || !c.decided || c.fresh >= soonPart*c.total.Rule().Amount() {
		p.schedule.soon(c)
	} else {
		p.schedule.later(c, quietTurns)
	}
}

// front: since the counter was decided so much came that pods must hear of it at once. Ingest says
// so too, but not within 5 ms of a tick.
func (c *counter) front() bool {
	t := c.total
	return c.fresh > urgentPart*t.Rule().Amount() && c.fresh > (t.Left()+c.fresh)/4 && !t.Throttled()
}

// usageOf is an entry as quota takes it.
func (p *Partition) usageOf(e *entry, a *arrival, split quota.Split) quota.Usage {
	return quota.Usage{
		Pod: a.pod, Epoch: a.epoch, Made: e.made, Cumulative: e.cumulative, Base: e.base,
		Demand: float64(e.demand), MeanCost: float64(e.meanCost), Burst: float64(e.burst),
		Span: time.Duration(e.spanMillis) * time.Millisecond, Age: time.Duration(e.ageMillis) * time.Millisecond,
		Lead: p.out.lead.value(a.now), Appended: a.appended, Offset: a.offset, Split: split,
	}
}
