package partition

import (
	"slices"
	"time"

	"github.com/weirproxy/weir/aggregator/store"
	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/internal/quota"
)

// Load returns ids whose stored state is to be loaded, at most one batch; the answer is due by
// Loaded or LoadFailed. It returns nil while an earlier batch is unanswered.
func (p *Partition) Load() []wirev1.ID {
	if p.loading > 0 || len(p.toLoad) == 0 {
		return nil
	}
	n := min(len(p.toLoad), loadBatch)
	ids := slices.Clone(p.toLoad[:n])
	p.toLoad = slices.Delete(p.toLoad, 0, n)
	p.loading = n
	return ids
}

// Loaded takes the store's answer to Load.
func (p *Partition) Loaded(saved []store.Saved, now quota.Time) {
	p.loading = 0
	p.sink.unreadable = false
	for i := range saved {
		p.stats.Loads++
		if c := p.counters[saved[i].ID]; c != nil && c.phase == loading {
			p.restored(c, &saved[i], now)
		}
	}
	p.drained = p.drained || len(p.toLoad) == 0
}

func (p *Partition) restored(c *counter, s *store.Saved, now quota.Time) {
	c.countAfter, c.whole = p.start.Offset, true
	id, err := wirev1.DecodeIdentity(s.Identity)
	if s.Found && err == nil && p.cfg.Keys.ID(s.Identity) == c.id && id.Target == c.target.name {
		c.identity, c.saved = s.Identity, s.Fields
		if s.LogID == p.cfg.Owner.LogID { // it is older where nothing changed since
			c.countAfter = max(c.countAfter, s.Through)
		}
		c.whole = s.LogID != p.cfg.Owner.LogID
	}
	p.resolve(c, now)
}

// LoadFailed says that the store did not answer Load for these ids. They are asked for again; where
// this owner has held the partition longer than a counter's window, nothing of it is in the store that
// would still count, and it starts empty.
func (p *Partition) LoadFailed(ids []wirev1.ID, now quota.Time) {
	p.loading = 0
	p.sink.unreadable = true
	for _, id := range ids {
		c := p.counters[id]
		if c == nil || c.phase != loading {
			continue
		}
		if p.outlived(c, now) {
			c.countAfter, c.whole = p.start.Offset, true
			p.resolve(c, now)
			continue
		}
		p.toLoad = append(p.toLoad, id)
	}
}

func (p *Partition) outlived(c *counter, now quota.Time) bool {
	if !p.live || c.identity == nil {
		return false
	}
	id, err := wirev1.DecodeIdentity(c.identity)
	if err != nil {
		return false
	}
	r, ok := p.policies.Resolve(id)
	if !ok || r.Rule == nil {
		return ok
	}
	return time.Duration(now-p.liveSince) > r.Rule.WindowAt(p.clock.now(now))+slack
}

// wait puts an entry aside until its counter is live. Entries of one slot are joined where the
// stored state cannot lie between them.
func (p *Partition) wait(c *counter, u *quota.Usage, now quota.Time) {
	if u.Check(maxUnits) != nil { // it would spoil what it is joined with
		p.stats.Implausible++
		return
	}
	if c.phase == exempt || joined(c.waiting, u, p.cfg.Owner.Epoch) {
		return
	}
	if p.waiting >= p.cfg.MaxWaiting && (p.live || c.phase != loading) { // a replay waits (Backlogged)
		p.stats.NoRoom++
		return
	}
	if len(c.waiting) == 0 {
		c.since = now
		if !c.listed {
			c.listed = true
			p.waiters = append(p.waiters, c)
		}
	}
	c.waiting = append(c.waiting, waiter{*u, u.Offset, u.Appended})
	p.waiting++
}

// joined extends the newest waiting entry of the same slot by u, if both came after the claim.
func joined(waiting []waiter, u *quota.Usage, epoch int64) bool {
	for i := len(waiting) - 1; i >= 0; i-- {
		w := &waiting[i]
		if w.Pod != u.Pod || w.Epoch != u.Epoch || w.Made != u.Made {
			continue
		}
		if w.first <= epoch || w.Split != quota.Whole || u.Split != quota.Whole {
			return false
		}
		if u.Cumulative >= w.Cumulative {
			from, base := begins(&w.Usage), w.Base
			w.Usage = *u
			w.Base = base
			w.Span = max(time.Duration(ends(u)-from)*time.Millisecond, 0)
		}
		return true
	}
	return false
}

func ends(u *quota.Usage) quota.Millis   { return u.Appended - quota.Millis(u.Age/time.Millisecond) }
func begins(u *quota.Usage) quota.Millis { return ends(u) - quota.Millis(u.Span/time.Millisecond) }

// release counts what waited for c, in order.
func (p *Partition) release(c *counter, now quota.Time) {
	for i := range c.waiting {
		w := &c.waiting[i]
		p.countFrom(c, &w.Usage, w.first, w.firstAppended, now)
	}
	p.waiting -= len(c.waiting)
	c.waiting = nil
}

// drop gives up what waited for c.
func (p *Partition) drop(c *counter, reason *uint64) {
	*reason += uint64(len(c.waiting))
	p.waiting -= len(c.waiting)
	c.waiting = nil
}

// expireWaiting drops entries whose counter's text or policy did not come in time, and tidies the list.
func (p *Partition) expireWaiting(now quota.Time) {
	p.waiters = slices.DeleteFunc(p.waiters, func(c *counter) bool {
		if late := time.Duration(now-c.since) > waitTextFor; late && len(c.waiting) > 0 {
			switch c.phase {
			case wanting:
				p.drop(c, &p.stats.NoIdentity)
			case parked:
				p.drop(c, &p.stats.UnknownPolicy)
			}
		}
		c.listed = len(c.waiting) > 0
		return !c.listed
	})
}

// oldestWaiting is the lowest offset that waits, with its append time; false if none does.
func (p *Partition) oldestWaiting() (offset int64, appended quota.Millis, ok bool) {
	for _, c := range p.waiters {
		if len(c.waiting) > 0 && (!ok || c.waiting[0].first < offset) {
			offset, appended, ok = c.waiting[0].first, c.waiting[0].firstAppended, true
		}
	}
	return offset, appended, ok
}

// stuck reports whether a counter has waited for the store so long that pods must not take its
// record as renewed.
func (p *Partition) stuck(now quota.Time) bool {
	if !p.drained && p.loading+len(p.toLoad) > 0 {
		return true
	}
	for _, c := range p.waiters {
		if c.phase == loading && time.Duration(now-c.since) > stuckLoad {
			return true
		}
	}
	return false
}

// wantedIDs picks texts to ask pods for, those not asked for lately.
func (p *Partition) wantedIDs(now quota.Time) []*wirev1.CounterID {
	var out []*wirev1.CounterID
	p.wanted = slices.DeleteFunc(p.wanted, func(c *counter) bool { return c.phase != wanting })
	n := 0
	for _, c := range p.wanted { // in the order of asking
		if n == wantedPerHeader || c.asked != 0 && time.Duration(now-c.asked) < wantedAgain {
			break
		}
		n++
		c.asked = now
		out = append(out, &wirev1.CounterID{Hi: c.id.Hi, Lo: c.id.Lo})
	}
	p.wanted = append(p.wanted[n:], p.wanted[:n]...)
	return out
}
