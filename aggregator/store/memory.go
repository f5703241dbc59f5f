package store

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	wirev1 "github.com/weirproxy/weir/api/wire/v1"
)

// Memory is a store in memory, for tests and simulations: the same fence and the same losses, but
// keys do not expire. It is safe for concurrent use.
type Memory struct {
	mu    sync.Mutex
	down  bool
	parts map[int32]*memoryPartition
}

type memoryPartition struct {
	record   *Record
	begun    uint64
	counters map[wirev1.ID]Saved
}

// NewMemory makes an empty store.
func NewMemory() *Memory { return &Memory{parts: map[int32]*memoryPartition{}} }

// SetDown makes every call fail with ErrUnavailable, or serve again with what was stored.
func (m *Memory) SetDown(down bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.down = down
}

// Empty forgets all, as a server that was restarted without a file.
func (m *Memory) Empty() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.parts = map[int32]*memoryPartition{}
}

// Copy returns what is stored now as a store of its own: what a server that failed over may come back with.
func (m *Memory) Copy() *Memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := NewMemory()
	for n, p := range m.parts {
		q := &memoryPartition{begun: p.begun, counters: maps.Clone(p.counters)} // a Saved is replaced, never changed
		if p.record != nil {
			r := *p.record
			q.record = &r
		}
		out.parts[n] = q
	}
	return out
}

// Snapshot returns a copy of a partition's counters.
func (m *Memory) Snapshot(partition int32) map[wirev1.ID]Saved {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.part(partition).counters)
}

// Expire forgets a counter, as the end of its time to live does.
func (m *Memory) Expire(partition int32, id wirev1.ID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.part(partition).counters, id)
}

func (m *Memory) part(p int32) *memoryPartition {
	if m.parts[p] == nil {
		m.parts[p] = &memoryPartition{counters: map[wirev1.ID]Saved{}}
	}
	return m.parts[p]
}

func (m *Memory) enter() error {
	if m.down {
		return fmt.Errorf("memory store: %w", ErrUnavailable)
	}
	return nil
}

// Claim is documented at Redis.Claim.
func (m *Memory) Claim(_ context.Context, o Owner) (Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.enter(); err != nil {
		return Record{}, err
	}
	p := m.part(o.Partition)
	before := Record{Offset: -1}
	if p.record != nil {
		before = *p.record
		if before.LogID == o.LogID && before.Epoch > o.Epoch {
			return Record{}, fenced(o, before.Epoch)
		}
	}
	next := before
	next.LogID, next.Epoch, next.Flush, next.Clean = o.LogID, o.Epoch, 0, false
	if before.LogID != o.LogID {
		next.Offset, next.Appended = -1, 0
	}
	p.record, p.begun = &next, 0
	return before, nil
}

// LoadCounters is documented at Redis.LoadCounters.
func (m *Memory) LoadCounters(_ context.Context, partition int32, ids []wirev1.ID) ([]Saved, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.enter(); err != nil {
		return nil, err
	}
	out := make([]Saved, len(ids))
	for i, id := range ids {
		out[i] = m.part(partition).counters[id]
		out[i].ID = id
		out[i].Fields = slices.Clone(out[i].Fields)
	}
	return out, nil
}

// Flush is documented at Redis.Flush.
func (m *Memory) Flush(_ context.Context, f *Flush) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.enter(); err != nil {
		return err
	}
	p := m.part(f.Partition)
	if err := p.fence(f); err != nil {
		return err
	}
	for i := range f.Counters {
		p.write(f.LogID, &f.Counters[i])
	}
	p.begun = f.Sequence
	p.record = &Record{
		LogID: f.LogID, Epoch: f.Epoch, Offset: f.Offset, Appended: f.Appended,
		OwnerTime: f.OwnerTime, Flush: f.Sequence, Clean: f.Clean,
	}
	return nil
}

func (p *memoryPartition) fence(f *Flush) error {
	r, flush := p.record, int64(-1)
	if r != nil && (r.LogID != f.LogID || r.Epoch > f.Epoch) {
		return fenced(f.Owner, r.Epoch)
	}
	if r != nil && r.Epoch == f.Epoch {
		if p.begun > f.Sequence {
			return ErrSuperseded
		}
		flush = int64(r.Flush) //nolint:gosec // far below 2^63
	}
	if flush < int64(f.Known) && !f.Rewrite { //nolint:gosec // far below 2^63
		return ErrLost
	}
	return nil
}

func (p *memoryPartition) write(log LogID, c *Counter) {
	s, ok := p.counters[c.ID]
	if !ok || c.Whole {
		s = Saved{ID: c.ID, Found: true, Identity: slices.Clone(c.Identity)}
	}
	s.LogID, s.Through = log, c.Through
	s.Fields = mergeFields(s.Fields, c.Fields)
	p.counters[c.ID] = s
}

// mergeFields returns old with new's values on top, sorted by index, sharing memory with neither.
func mergeFields(old, add []Field) []Field {
	by := make(map[uint16]uint64, len(old)+len(add))
	for _, f := range slices.Concat(old, add) {
		by[f.Index] = f.Value
	}
	out := make([]Field, 0, len(by))
	for i, v := range by {
		out = append(out, Field{Index: i, Value: v})
	}
	slices.SortFunc(out, func(a, b Field) int { return int(a.Index) - int(b.Index) })
	return out
}
