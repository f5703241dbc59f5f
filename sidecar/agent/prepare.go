package agent

import (
	"sync"

	"github.com/weirproxy/weir/internal/bus"
	"github.com/weirproxy/weir/internal/quota"
	"github.com/weirproxy/weir/sidecar/feed"
	"github.com/weirproxy/weir/sidecar/ledger"
)

// hearing is what the agent hears of one partition.
type hearing struct {
	partition int32
	feed      *feed.Partition
	// took is the smallest time from hand-over to acknowledgement of the last 60 s.
	took     feed.Smallest
	ages     feed.Smallest // of the newest header, ns and negative: the largest of the last 60 s
	reason   string        // why it cannot be read
	instance string        // the owner, for people
	stop     func()        // ends its reader; nil: not read

	// Checks read fresh's atomics. Its other fields are read by a check that makes a slot, so that the
	// control goroutine writes them, and live, under mu.
	fresh quota.Fresh
	mu    sync.RWMutex
	live  bool // a header came after the partition's end was reached: records apply
}

func newHearing(partition int32, fingerprint uint32, logID []byte) *hearing {
	return &hearing{partition: partition, feed: feed.NewPartition(fingerprint, logID)}
}

// write changes what checks read under the lock.
func (h *hearing) write(f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f()
}

// prepare makes a new slot's counter ready, with the newest record if one is known: a counter that is
// blocked elsewhere is blocked here from its first request. It runs on the check's goroutine.
func (a *Agent) prepare(s *ledger.Slot) {
	now := a.now()
	c := new(quota.Counter)
	s.Counter = c
	a.hearingsMu.RLock()
	h := a.hearings[s.Partition]
	a.hearingsMu.RUnlock()
	if h == nil {
		c.Init(s.Cell, s.Rule, s.Fresh, s.Fleet, s.Made, now)
		return
	}
	h.mu.RLock()
	defer h.mu.RUnlock()
	c.Init(s.Cell, s.Rule, s.Fresh, s.Fleet, s.Made, now)
	if r, ok := a.known.Get(s.ID); ok && h.live && r.Partition == h.partition {
		rnd := quota.NewRand(a.config.Seed ^ s.Made)
		c.Apply(r.Header, r.Record, now, &rnd)
	}
}

// takeMade takes up new slots: what has changed between their making and now applies to them too.
func (a *Agent) takeMade(now quota.Time) {
	a.ledger.TakeMade(func(s *ledger.Slot) {
		if a.stray(s) { // made by a check that began before the last change of policies
			a.ledger.Remove(s)
			return
		}
		a.refit(s, now)
		h := a.hearings[s.Partition]
		if h == nil || !h.live {
			return
		}
		if r, ok := a.known.Get(s.ID); ok && r.Partition == h.partition {
			s.Counter.Apply(r.Header, r.Record, now, &a.rnd)
		}
	})
}

// hearing returns that of a partition, made and read if it is new.
func (a *Agent) hearing(partition int32) *hearing {
	h := a.hearings[partition]
	if h == nil {
		h = newHearing(partition, a.config.Keys.Fingerprint(), a.logID)
		a.hearingsMu.Lock()
		a.hearings[partition] = h
		a.hearingsMu.Unlock()
		a.listen(h)
	}
	return h
}

// drop ends a hearing that no target needs any more.
func (a *Agent) drop(h *hearing) {
	if h.stop != nil {
		h.stop()
	}
	a.hearingsMu.Lock()
	delete(a.hearings, h.partition)
	a.hearingsMu.Unlock()
	a.known.Forget(h.partition)
	a.metrics.ForgetPartition(h.partition)
}

// topicID as a log id on the wire; nil for none.
func logIDOf(id bus.TopicID) []byte {
	if id == (bus.TopicID{}) {
		return nil
	}
	return id[:]
}
