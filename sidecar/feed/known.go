package feed

import (
	"sync"
	"time"

	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/internal/quota"
)

const (
	// DefaultKnown bounds Known; an entry is about 250 bytes.
	DefaultKnown = 20_000

	sampled  = 8
	hotShare = 4
	// beyond a tick and a flush, how long a decision takes to arrive and act (ALGORITHM 3)
	horizonRest = 45 * time.Millisecond
)

// Known is the newest record of every counter of the partitions read that is hot, blocked or known to be asked in bursts, whether
// the pod has seen the counter or not. At its bound the one furthest from its limit (of a few sampled) goes.
// Get is safe for concurrent use with one writer.
type Known struct {
	mu      sync.RWMutex
	bound   int
	records map[wirev1.ID]KnownRecord
	dropped uint64
}

// KnownRecord is a record with the header it came with.
type KnownRecord struct {
	Record    quota.Record
	Header    quota.Header
	Appended  quota.Millis
	Partition int32
}

// NewKnown returns an empty table of at most bound records; 0: DefaultKnown.
func NewKnown(bound int) *Known {
	if bound <= 0 {
		bound = DefaultKnown
	}
	return &Known{bound: bound, records: map[wirev1.ID]KnownRecord{}}
}

// Put takes up the records of an update: those that a new slot should start from are remembered, others forgotten.
func (k *Known) Put(partition int32, u *Update) {
	if len(u.Records) == 0 {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for i := range u.Records {
		r := &u.Records[i]
		if !worth(&r.Record, &u.Header) {
			delete(k.records, r.ID)
			continue
		}
		if _, held := k.records[r.ID]; !held && len(k.records) >= k.bound && !k.makeRoom(&r.Record) {
			k.dropped++
			continue
		}
		k.records[r.ID] = KnownRecord{Record: r.Record, Header: u.Header, Appended: u.Appended, Partition: partition}
	}
}

// worth says that a pod which meets the counter later should start from the record: it is hot as ALGORITHM 9 says it,
// blocked, or knows of bursts.
func worth(r *quota.Record, h *quota.Header) bool {
	horizon := (h.Flush + h.Tick + horizonRest).Seconds()
	return r.Paced || r.BlockedFor > 0 || r.Burst > 0 || r.Remaining < hotShare*max(r.Demand*r.MeanCost*horizon, 1)
}

// makeRoom drops the furthest from its limit of a few records, unless the newcomer is further.
func (k *Known) makeRoom(newcomer *quota.Record) bool {
	var worst wirev1.ID
	furthest, n := room(newcomer), 0
	for id := range k.records { // a map's order is random enough to sample by
		r := k.records[id]
		if d := room(&r.Record); d > furthest {
			worst, furthest = id, d
		}
		if n++; n == sampled {
			break
		}
	}
	if worst.IsZero() {
		return false
	}
	k.dropped++
	delete(k.records, worst)
	return true
}

func room(r *quota.Record) float64 { return r.Remaining / r.Amount }

// Get returns the record known of a counter.
func (k *Known) Get(id wirev1.ID) (KnownRecord, bool) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	r, ok := k.records[id]
	return r, ok
}

// Place moves the records of a partition to where they belong in the pod's time, once that is better
// known than at their receipt.
func (k *Known) Place(partition int32, received func(appended quota.Millis) quota.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for id, r := range k.records {
		if r.Partition == partition {
			r.Header.Received = received(r.Appended)
			k.records[id] = r
		}
	}
}

// Forget drops all records of a partition: its log began anew.
func (k *Known) Forget(partition int32) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for id, r := range k.records {
		if r.Partition == partition {
			delete(k.records, id)
		}
	}
}

// Len returns how many records are known, and how many were dropped at the bound so far.
func (k *Known) Len() (records int, dropped uint64) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return len(k.records), k.dropped
}
