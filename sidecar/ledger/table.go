package ledger

import (
	"sync"
	"sync/atomic"

	wirev1 "github.com/weirproxy/weir/api/wire/v1"
)

const (
	tableShards  = 64 // a power of two
	shardBits    = 6
	firstEntries = 16
)

// table maps ids to slots: open addressing with linear probing, one array a shard. Readers take no
// lock: an array's entries go from nil to a slot to the tombstone and never back, and a grown array
// replaces the old one at once.
type table struct {
	seed   [2]uint64
	gone   *Slot // the tombstone
	shards [tableShards]tableShard
}

type tableShard struct {
	mu    sync.Mutex
	array atomic.Pointer[[]atomic.Pointer[Slot]]
	live  int
	used  int // live and tombstones
	_     [88]byte
}

func newTable(seed [2]uint64) *table {
	t := &table{seed: seed, gone: new(Slot)}
	for i := range t.shards {
		array := make([]atomic.Pointer[Slot], firstEntries)
		t.shards[i].array.Store(&array)
	}
	return t
}

// hash mixes the table's own seed in, so that ids which meet in one table do not meet in another.
func (t *table) hash(id wirev1.ID) uint64 {
	h := (id.Lo ^ t.seed[0]) * 0x9e3779b97f4a7c15
	h ^= h >> 32
	h = (h ^ id.Hi ^ t.seed[1]) * 0xd6e8feb86659fd93
	return h ^ h>>32
}

func (t *table) lookup(id wirev1.ID) *Slot {
	h := t.hash(id)
	array := *t.shards[h%tableShards].array.Load()
	return t.find(array, h, id)
}

func (t *table) find(array []atomic.Pointer[Slot], h uint64, id wirev1.ID) *Slot {
	mask := uint64(len(array) - 1)
	for i := h >> shardBits; ; i++ {
		s := array[i&mask].Load()
		if s == nil {
			return nil
		}
		if s.ID == id && s != t.gone {
			return s
		}
	}
}

// shard returns the shard of an id, to be locked by its caller.
func (t *table) shard(id wirev1.ID) *tableShard { return &t.shards[t.hash(id)%tableShards] }

// insert adds a slot whose id is not in the table. The shard is locked.
func (t *table) insert(sh *tableShard, s *Slot) {
	array := *sh.array.Load()
	if 2*(sh.used+1) > len(array) {
		array = t.rebuilt(sh, array)
	}
	t.place(array, s)
	sh.live++
	sh.used++
}

func (t *table) place(array []atomic.Pointer[Slot], s *Slot) {
	mask := uint64(len(array) - 1)
	i := t.hash(s.ID) >> shardBits
	for array[i&mask].Load() != nil {
		i++
	}
	array[i&mask].Store(s)
}

// rebuilt replaces a shard's array by one without tombstones that is at most a quarter full.
func (t *table) rebuilt(sh *tableShard, old []atomic.Pointer[Slot]) []atomic.Pointer[Slot] {
	size := firstEntries
	for size < 4*(sh.live+1) {
		size *= 2
	}
	array := make([]atomic.Pointer[Slot], size)
	for i := range old {
		if s := old[i].Load(); s != nil && s != t.gone {
			t.place(array, s)
		}
	}
	sh.used = sh.live
	sh.array.Store(&array)
	return array
}

// remove takes a slot out; later lookups do not find it.
func (t *table) remove(s *Slot) {
	sh := t.shard(s.ID)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	array := *sh.array.Load()
	mask := uint64(len(array) - 1)
	for i := t.hash(s.ID) >> shardBits; ; i++ {
		switch array[i&mask].Load() {
		case nil:
			return
		case s:
			array[i&mask].Store(t.gone)
			sh.live--
			return
		}
	}
}
