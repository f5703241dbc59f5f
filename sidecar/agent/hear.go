package agent

import (
	"time"

	"go.uber.org/zap"

	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/internal/bus"
	"github.com/weirproxy/weir/internal/log"
	"github.com/weirproxy/weir/internal/quota"
	"github.com/weirproxy/weir/sidecar/feed"
	"github.com/weirproxy/weir/sidecar/ledger"
)

// batch takes up one record of weir.decisions; received is when it was read.
func (a *Agent) batch(h *hearing, m bus.Message, received quota.Time) {
	if a.hearings[h.partition] != h { // dropped while this was on its way
		return
	}
	u, why := h.feed.Handle(m.Value, quota.Millis(m.Appended.UnixMilli()), received)
	if why != "" {
		a.metrics.Ignored(string(why), 1)
		if why == feed.LogID {
			a.link.askLogID()
		}
		return
	}
	a.metrics.Batches.Inc()
	a.metrics.Records.Add(float64(len(u.Records)))
	a.metrics.Ignored(string(feed.BadRecord), u.BadRecords)
	if u.NewOwner {
		h.instance = u.Instance
		a.log.Info("a partition has a new owner", zap.Int32(log.Partition, h.partition),
			zap.Int64(log.Epoch, u.Header.Epoch), zap.String(log.Instance, u.Instance))
	}
	a.known.Put(h.partition, u)
	a.hearTargets(u.Targets)
	if h.feed.CaughtUp() {
		a.apply(h, u)
	}
}

// hearTargets takes up the live pods and the limits in overflow of the pod's targets.
func (a *Agent) hearTargets(targets []*wirev1.TargetHeader) {
	for _, th := range targets {
		t := a.targets[th.GetTarget()]
		if t == nil {
			continue
		}
		if n, known := t.Fleet.Pods(); !known || n != int(th.GetLivePods()) {
			t.Fleet.Set(int(th.GetLivePods()))
			a.saver.changed = true
		}
		t.SetOverflow(th.GetOverflow())
	}
}

// longestLag is how old this pod's usage may be that a header does not include. Checks count it against the
// share: where the owner or a broker is behind for longer, or usage cannot be written while decisions can,
// they would soon refuse whatever comes. A header that is so far behind is as good as none.
const longestLag = time.Second

// apply lets a header and its records reach the counters.
func (a *Agent) apply(h *hearing, u *feed.Update) {
	now := a.now()
	a.builder.Header(h.partition, u.Header)
	since := a.builder.Awaited(h.partition, u.Header.Watermark)
	if since != 0 && time.Duration(now-since) > longestLag {
		a.metrics.Ignored(string(feed.Lag), 1)
	} else {
		a.decide(h, u, now)
	}
	for _, id := range u.Wanted {
		if s := a.ledger.Find(id); s != nil && s.Partition == h.partition {
			a.builder.Want(s)
		}
	}
}

// decide puts a header and its records in force.
func (a *Agent) decide(h *hearing, u *feed.Update, now quota.Time) {
	h.noteAge(now)
	first := !h.live
	if first {
		a.known.Place(h.partition, h.feed.Received)
	}
	h.write(func() {
		if first && !u.NewOwner {
			h.fresh.Observe(h.feed.First())
		}
		h.fresh.Observe(u.Header)
		h.live = true
	})
	if first {
		a.applyKnown(h, now)
	}
	for i := range u.Records {
		if s := a.ledger.Find(u.Records[i].ID); s != nil && s.Partition == h.partition {
			s.Counter.Apply(u.Header, u.Records[i].Record, now, &a.rnd)
		}
	}
	if !u.Header.Deferred { // else it renews nothing, and includes nothing either
		a.builder.Included(h.partition, u.Header.Watermark, func(s *ledger.Slot) { s.Counter.Include(now, &a.rnd) })
	}
}

// applyKnown gives the counters that were made before the partition's end was reached what was heard of
// them meanwhile.
func (a *Agent) applyKnown(h *hearing, now quota.Time) {
	a.log.Info("decisions are in force", zap.Int32(log.Partition, h.partition))
	for _, s := range a.ledger.Live() {
		if s.Partition != h.partition {
			continue
		}
		if r, ok := a.known.Get(s.ID); ok {
			s.Counter.Apply(r.Header, r.Record, now, &a.rnd)
		}
	}
}

// setLogID takes up that weir.usage has this topic id. A new one makes offsets, epochs and records of the
// old one void; counts and bases go on.
func (a *Agent) setLogID(id []byte) {
	if len(id) == 0 || string(id) == string(a.logID) {
		return
	}
	remade := a.logID != nil
	if remade {
		a.log.Warn("the usage topic was made anew: what awaits the old one's offsets is dropped, counts go on",
			zap.Binary(log.LogID, id))
	}
	a.logID = id
	a.builder.SetLogID(id)
	dropped := map[int32]bool{}
	for _, h := range a.hearings {
		if h.feed.SetLogID(id) {
			h.write(func() { h.fresh.Reset(); h.live = false })
			a.known.Forget(h.partition)
			dropped[h.partition] = true
		}
	}
	now := a.now()
	for _, s := range a.ledger.Live() {
		if remade || dropped[s.Partition] {
			s.Counter.DropLog(now)
		}
	}
}
