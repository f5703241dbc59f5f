package partition

import (
	"fmt"
	"slices"

	"github.com/weirproxy/weir/aggregator/store"
	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/internal/quota"
)

// Read takes one record of the usage partition, in the log's order. A record that is no report of
// this installation is skipped and counted; nothing stalls the partition.
func (p *Partition) Read(offset int64, appended quota.Millis, value []byte, now quota.Time) {
	if offset <= p.watermark || p.stopped != nil {
		return
	}
	if !p.live && offset > p.cfg.Owner.Epoch { // the claim itself is no longer in the log
		p.goLive(now)
	}
	p.takeTime(appended, now)
	p.stats.Messages++
	m, err := p.report.decode(value)
	switch {
	case err != nil:
		p.stats.Malformed++
	case m.claim != nil:
		p.readClaim(m.claim, offset)
	case m.isReport:
		p.readReport(offset, appended, now)
		if p.live && p.unsaid == 0 {
			p.unsaid = appended
		}
	}
	p.watermark, p.appended = offset, appended
	if !p.live && offset == p.cfg.Owner.Epoch {
		p.goLive(now)
	}
}

func (p *Partition) takeTime(appended quota.Millis, now quota.Time) {
	if !p.live {
		p.clock.replay(appended)
	} else if p.clock.append(appended, now) {
		p.stats.Jumps++
	}
}

func (p *Partition) goLive(now quota.Time) {
	p.live, p.liveSince = true, now
	p.clock.start(quota.Millis(p.start.OwnerTime), now)
	p.out.next = now
}

// readClaim stops this owner where the claim is a newer owner's.
func (p *Partition) readClaim(c *wirev1.Claim, offset int64) {
	switch {
	case c.KeyFingerprint != p.cfg.Keys.Fingerprint():
		p.stats.Fingerprint++
	case slices.Equal(c.LogId, p.cfg.Owner.LogID[:]) && offset > p.cfg.Owner.Epoch && !slices.Contains(p.cfg.Nonces, c.Nonce):
		p.stopped = fmt.Errorf("%w: instance %q at offset %d", store.ErrFenced, c.Instance, offset)
	}
}

func (p *Partition) readReport(offset int64, appended quota.Millis, now quota.Time) {
	r := &p.report
	if r.fingerprint != p.cfg.Keys.Fingerprint() {
		p.stats.Fingerprint++
		return
	}
	if len(r.pod) == 0 {
		p.stats.Malformed++
		return
	}
	if !slices.Equal(r.logID, p.cfg.Owner.LogID[:]) {
		p.stats.StaleLogID++
	}
	ref, ok := p.pods.ref(r.pod, r.epoch, now)
	if !ok {
		p.stats.TooManyPods++
		return
	}
	a := arrival{pod: ref, epoch: r.epoch, offset: offset, appended: min(appended, p.clock.now(now)), now: now}
	for _, tu := range r.targets {
		t := p.targetOf(tu.name)
		if t == nil {
			p.stats.Foreign += uint64(tu.to - tu.from) //nolint:gosec // not negative
			continue
		}
		entries := r.entries[tu.from:tu.to]
		p.stats.Entries += uint64(len(entries))
		for i := range entries {
			p.readEntry(t, &entries[i], splitOf(entries, i), &a)
		}
	}
}

// arrival says with which report an entry came.
type arrival struct {
	pod, epoch uint64
	offset     int64
	appended   quota.Millis
	now        quota.Time
}

// splitOf: two entries of one slot in one report meet at a Calendar reset.
func splitOf(entries []entry, i int) quota.Split {
	e := &entries[i]
	if i+1 < len(entries) && entries[i+1].id == e.id && entries[i+1].made == e.made {
		return quota.EndsAtReset
	}
	if i > 0 && entries[i-1].id == e.id && entries[i-1].made == e.made {
		return quota.StartsAtReset
	}
	return quota.Whole
}

func (p *Partition) readEntry(t *target, e *entry, split quota.Split, a *arrival) {
	c := p.counters[e.id]
	if c == nil {
		if c = p.meet(t, e, a.now); c == nil {
			return
		}
	}
	if c.target != t {
		p.stats.Foreign++
		return
	}
	if c.identity == nil && len(e.identity) > 0 && !p.learn(c, e.identity) {
		return
	}
	c.seen = a.now
	u := p.usageOf(e, a, split)
	if c.phase == live {
		p.count(c, &u, a.now)
		return
	}
	p.wait(c, &u, a.now)
	if c.phase == wanting && c.identity != nil {
		p.resolve(c, a.now)
	}
}

// meet makes a counter whose state is yet to be loaded. At a full target it returns the overflow
// counter that the entry is folded into, or nil.
func (p *Partition) meet(t *target, e *entry, now quota.Time) *counter {
	if e.id.IsZero() {
		p.stats.Malformed++
		return nil
	}
	if t.counters >= p.cfg.MaxCounters {
		return p.fold(t, e, now)
	}
	return p.add(t, e.id, now)
}

func (p *Partition) add(t *target, id wirev1.ID, now quota.Time) *counter {
	c := &counter{id: id, target: t, phase: loading, since: now, seen: now, index: len(p.all), countAfter: -1}
	p.counters[id] = c
	p.all = append(p.all, c)
	t.counters++
	p.toLoad = append(p.toLoad, id)
	return c
}

// learn takes a counter's identity from a report, if it is the one that its id names.
func (p *Partition) learn(c *counter, identity []byte) bool {
	id, err := wirev1.DecodeIdentity(identity)
	if err != nil || p.cfg.Keys.ID(identity) != c.id {
		p.stats.Malformed++
		return false
	}
	if id.Target != c.target.name {
		p.stats.Foreign++
		return false
	}
	c.identity = slices.Clone(identity)
	return true
}
