package partition

import (
	"math"
	"time"

	"google.golang.org/protobuf/proto"

	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/internal/quota"
)

// out is what is known of the decisions partition.
type out struct {
	next, last     quota.Time // no regular batch before; the newest batch
	sequence       uint64
	inFlight       bool
	bytes, batches budget
	changed        []*target
	fullAt         quota.Time // all targets are due
	sent           []*counter // with a record in the batch in flight
	lead           lead
	moment         quota.Moment
	candidates     candidates
}

func newOut(c *Config, now quota.Time) out {
	return out{
		next: now, fullAt: now,
		bytes:   newBudget(c.BytesPerSecond, c.BytesPerSecond, now),
		batches: newBudget(c.BatchesPerSecond, c.BatchesPerSecond/4, now),
		moment:  quota.Moment{Flush: c.Flush, Tick: c.HotTick, Uplink: quota.DefaultUplink},
	}
}

// NextTick is when Tick should be called; false while no header may go out.
func (p *Partition) NextTick(now quota.Time) (quota.Time, bool) {
	o := &p.out
	if !p.live || p.stopped != nil || o.inFlight {
		return 0, false
	}
	if p.urgent && o.batches.available(now) >= 1 {
		return min(o.next, max(o.last+quota.Time(urgentGap), now)), true
	}
	return o.next, true
}

// Tick returns the batch that is due, or nil. What became of it is due by Sent; no further batch is
// made before.
func (p *Partition) Tick(now quota.Time) *wirev1.DecisionBatch {
	if at, ok := p.NextTick(now); !ok || now < at {
		return nil
	}
	return p.tick(now)
}

// Last returns a batch whenever one may be sent: the last header of a handover.
func (p *Partition) Last(now quota.Time) *wirev1.DecisionBatch {
	if !p.live || p.stopped != nil || p.out.inFlight {
		return nil
	}
	return p.tick(now)
}

func (p *Partition) tick(now quota.Time) *wirev1.DecisionBatch {
	p.sweep(now)
	p.expireWaiting(now)
	p.evaluate(now)
	p.settle(now)
	o := &p.out
	period := p.cfg.IdleTick
	if p.hot > 0 {
		period = p.cfg.HotTick
	}
	if o.next += quota.Time(period); o.next <= now { // late: no burst to catch up
		o.next = now + quota.Time(period)
	}
	o.last, p.urgent, o.inFlight = now, false, true
	o.sequence++
	o.batches.available(now)
	o.batches.take(1)
	b := &wirev1.DecisionBatch{Header: p.header(now, period)}
	o.bytes.available(now)
	o.bytes.take(float64(proto.Size(b)))
	b.Records = p.choose(b.Header)
	p.said(b.Header)
	p.stats.Batches++
	p.stats.Records += uint64(len(b.Records))
	return b
}

func (p *Partition) header(now quota.Time, period time.Duration) *wirev1.Header {
	o := &p.out
	all := now >= o.fullAt
	if all {
		o.fullAt = now + quota.Time(headerTargets)
	}
	return &wirev1.Header{
		LogId: p.cfg.Owner.LogID[:], KeyFingerprint: p.cfg.Keys.Fingerprint(), Instance: p.cfg.Instance,
		Epoch: p.cfg.Owner.Epoch, Sequence: o.sequence, Watermark: p.watermark, OwnerTimeMs: int64(p.clock.now(now)),
		FlushMs: uint32(p.cfg.Flush.Milliseconds()), TickMs: uint32(period.Milliseconds()), //nolint:gosec // small
		Targets: p.headerTargets(all), Wanted: p.wantedIDs(now), Deferred: p.stuck(now),
	}
}

// evaluate decides the counters that are due and gathers the records that pods should hear.
func (p *Partition) evaluate(now quota.Time) {
	o := &p.out
	o.moment.Now = p.clock.now(now)
	p.hot = 0
	for _, c := range p.schedule.take(now) {
		if c.phase != live {
			continue
		}
		o.moment.Pods = c.target.live()
		r, v := c.total.Tick(&o.moment)
		c.decided, c.fresh = true, 0
		p.watch(c, &r, now)
		if v.Hot {
			p.hot++
			p.schedule.soon(c)
		} else if v.Send || r.Demand > 0 || c.total.Due() <= o.moment.Now {
			turns := int64(quietTurns)
			if v.Distance > farAway {
				turns = farTurns
			}
			p.schedule.later(c, turns)
		}
		if v.Send {
			o.candidates.add(c, &r, &v)
		}
	}
}

// candidate is a record that pods should hear.
type candidate struct {
	c      *counter
	record quota.Record
}

// candidates are in classes, urgent ones first and those by distance from the limit, coarsely, so that
// many of them cost no sorting; minor ones come last.
type candidates [minor + 1][]candidate

const (
	distances = 32
	minor     = 2 * distances
)

func (k *candidates) add(c *counter, r *quota.Record, v *quota.Verdict) {
	class := int(min(max(v.Distance, 0), 0.999) * distances)
	switch {
	case v.Minor:
		class = minor
	case !v.Urgent:
		class += distances
	}
	k[class] = append(k[class], candidate{c, *r})
}

func (k *candidates) reset() {
	for i := range k {
		clear(k[i])
		k[i] = k[i][:0]
	}
}

// choose takes the records that the budget allows, those nearest to their limit first. What waits is
// offered again soon; the header says so and renews nothing, unless all that waits is minor: after a
// takeover there may be many of those.
func (p *Partition) choose(h *wirev1.Header) []*wirev1.Record {
	o := &p.out
	defer o.candidates.reset()
	var records []*wirev1.Record
	size := 0
	for class := range o.candidates {
		for i := range o.candidates[class] {
			k := &o.candidates[class][i]
			r := wireRecord(k.c.id, &k.record)
			n := proto.Size(r) + 3 // tag and length
			if o.bytes.left < float64(n) || size+n > maxBatch {
				if class < minor {
					h.Deferred = true
					p.stats.DeferredBatches++
				}
				return records
			}
			o.bytes.take(float64(n))
			size += n
			records = append(records, r)
			k.c.total.Sent(&k.record)
			o.sent = append(o.sent, k.c)
		}
	}
	return records
}

// Sent takes the outcome of the batch that Tick returned: took is from hand-over to acknowledgement.
// Where it may not have been appended, its records and targets are sent again.
func (p *Partition) Sent(ok bool, took time.Duration, now quota.Time) {
	o := &p.out
	o.inFlight = false
	if ok {
		o.lead.note(took, now)
	} else {
		for _, c := range o.sent {
			if c.phase == live {
				c.total.Renew()
				p.schedule.soon(c)
			}
		}
		o.fullAt = now
	}
	clear(o.sent)
	o.sent = o.sent[:0]
}

func wireRecord(id wirev1.ID, r *quota.Record) *wirev1.Record {
	out := &wirev1.Record{
		IdHi: id.Hi, IdLo: id.Lo, PolicyVersion: r.PolicyVersion, Amount: r.Amount, Rate: r.Rate,
		Remaining: r.Remaining, Expire1: r.Expire1, Expire2: r.Expire2, Content: r.Content,
		Demand: r.Demand, ShareSum: r.ShareSum, Epsilon: float32(r.Epsilon), Grant: r.Grant,
		Burst: float32(r.Burst), Paced: r.Paced,
		BlockedForMs: millis(r.BlockedFor), ResetInMs: millis(r.ResetIn),
	}
	if r.MeanCost != 1 {
		out.MeanCost = float32(r.MeanCost)
	}
	if !math.IsInf(r.Level, 1) {
		out.Level = proto.Float64(r.Level) // a copy: r is used again for the next tick
	}
	return out
}

func millis(d time.Duration) uint64 {
	return uint64(max((d+time.Millisecond-1)/time.Millisecond, 0)) //nolint:gosec // not negative
}

// lead is the owner's delta0: half of the smallest produce-to-acknowledgement time of the last one to
// two minutes, at most 8 ms; 0 while unknown.
type lead struct {
	now, before time.Duration
	since       quota.Time
}

const (
	leadWindow = time.Minute
	leadMost   = 8 * time.Millisecond
)

func (l *lead) note(took time.Duration, t quota.Time) {
	l.roll(t)
	if took > 0 && (l.now == 0 || took < l.now) {
		l.now = took
	}
}

func (l *lead) roll(t quota.Time) {
	if time.Duration(t-l.since) >= leadWindow {
		l.before, l.now, l.since = l.now, 0, t
	}
}

func (l *lead) value(t quota.Time) time.Duration {
	l.roll(t)
	least := l.now
	if least == 0 || l.before > 0 && l.before < least {
		least = l.before
	}
	return min(least/2, leadMost)
}
