package ledger

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/internal/quota"
)

func key(n uint64) Key {
	return Key{ID: wirev1.ID{Hi: n * 7919, Lo: n}, Identity: []byte{byte(n), 1, 2, 3}, Limit: "shop/orders/each-client"}
}

func always(*Slot) bool { return true }

func TestASlotIsMadeOnceAndNeverMoves(t *testing.T) {
	l := New(Config{Slots: 5000})
	pin := l.Pin(0)
	defer pin.Unpin()
	made := map[uint64]*Slot{}
	for n := uint64(1); n <= 5000; n++ {
		if l.Lookup(key(n).ID) != nil {
			t.Fatal("found before it was made")
		}
		s := l.Make(key(n))
		if s == nil || s.Made != n {
			t.Fatalf("slot %d: %+v", n, s)
		}
		made[n] = s
	}
	cells := map[*quota.Cell]bool{}
	for n, s := range made {
		if l.Lookup(s.ID) != s || l.Make(key(n)) != s {
			t.Fatalf("counter %d has another slot now", n)
		}
		cells[s.Cell] = true
	}
	if len(cells) != 5000 {
		t.Errorf("%d cells for 5000 counters", len(cells))
	}
}

// Case 18: at a full table established counters are unaffected, new keys find no room, and the
// overflow counters have room of their own.
func TestCase18AFullLedgerLeavesEstablishedCountersAlone(t *testing.T) {
	l := New(Config{Slots: 10, Reserve: 2})
	pin := l.Pin(0)
	defer pin.Unpin()
	for n := uint64(1); n <= 10; n++ {
		l.Make(key(n))
	}
	for n := uint64(11); n < 1000; n++ {
		if l.Make(key(n)) != nil {
			t.Fatal("room beyond the bound")
		}
	}
	overflow := func(n uint64) Key { k := key(n); k.Overflow = true; return k }
	if l.Make(overflow(2001)) == nil || l.Make(overflow(2002)) == nil || l.Make(overflow(2003)) != nil {
		t.Error("the reserve holds other than 2 overflow counters")
	}
	if l.Lookup(key(3).ID) == nil || l.Full() != 989+1 {
		t.Errorf("established counter found %v, full %d times", l.Lookup(key(3).ID) != nil, l.Full())
	}
	if slots, bytes := l.Size(); slots != 12 || bytes != 48 {
		t.Errorf("%d slots, %d bytes of identities", slots, bytes)
	}
}

func TestCase18IdentitiesAreBoundedInBytes(t *testing.T) {
	l := New(Config{Slots: 1000, IdentityBytes: 10})
	if l.Make(key(1)) == nil || l.Make(key(2)) == nil || l.Make(key(3)) != nil {
		t.Error("10 bytes hold other than two identities of 4")
	}
}

func TestACellIsGivenOutAgainOnlyWhenNoCheckHoldsIt(t *testing.T) {
	l := New(Config{Slots: 1})
	old := l.Pin(3)
	s := l.Make(key(1))
	l.TakeMade(func(*Slot) {})
	l.Remove(s)
	for range 10 {
		l.Reclaim(always)
	}
	young := l.Pin(4)
	if l.Lookup(s.ID) != nil || l.Make(key(2)) != nil {
		t.Fatal("the cell was given out while a check held it")
	}
	old.Unpin()
	l.Reclaim(always) // the younger check began after the removal: it cannot hold the slot
	if l.Make(key(2)) == nil {
		t.Error("the cell is not free although its last holder ended")
	}
	young.Unpin()
}

func TestADirtySlotStaysUntilItIsClean(t *testing.T) {
	l := New(Config{Slots: 1})
	pin := l.Pin(0)
	s := l.Make(key(1))
	l.TakeMade(func(*Slot) {})
	l.Remove(s)
	l.MarkDirty(s) // a check that found it before the removal
	pin.Unpin()
	for range 3 {
		if l.Reclaim(always) != 0 {
			t.Fatal("a marked slot was freed")
		}
	}
	l.TakeDirty(func(*Slot) {})
	if l.Reclaim(func(*Slot) bool { return false }) != 0 || l.Removing() != 1 {
		t.Fatal("freed although not clean")
	}
	if l.Reclaim(always) != 1 || l.Removing() != 0 {
		t.Error("not freed although clean")
	}
	if len(s.Identity()) != 0 || s.Counter != nil {
		t.Error("a freed slot, which reports that await a watermark may hold, keeps what it had")
	}
}

func TestAMarkDuringTakeDirtyIsNotLost(t *testing.T) {
	l := New(Config{})
	s := l.Make(key(1))
	l.MarkDirty(s)
	l.MarkDirty(s)
	seen := 0
	l.TakeDirty(func(s *Slot) {
		if seen++; seen == 1 {
			l.MarkDirty(s)
		}
	})
	l.TakeDirty(func(*Slot) { seen++ })
	if seen != 2 {
		t.Errorf("seen %d times, want 2", seen)
	}
	select {
	case <-l.Wake():
	default:
		t.Error("nobody was woken")
	}
}

// The table against a map, through growth and tombstones.
func TestTableProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := New(Config{Slots: 100})
		model := map[uint64]*Slot{}
		for range rapid.IntRange(1, 400).Draw(t, "steps") {
			n := rapid.Uint64Range(1, 60).Draw(t, "n")
			switch s := l.Make(key(n)); {
			case model[n] != nil && s != model[n]:
				t.Fatalf("counter %d has another slot", n)
			case s == nil:
				t.Fatal("no room")
			default:
				model[n] = s
			}
			l.TakeMade(func(*Slot) {})
			if victim := rapid.Uint64Range(1, 60).Draw(t, "victim"); model[victim] != nil {
				l.Remove(model[victim])
				delete(model, victim)
			}
			l.Reclaim(always)
			for n := uint64(1); n <= 60; n++ {
				if l.Lookup(key(n).ID) != model[n] {
					t.Fatalf("lookup of %d differs", n)
				}
			}
			if len(l.Live()) != len(model) {
				t.Fatalf("%d live, want %d", len(l.Live()), len(model))
			}
		}
	})
}

// Checks charge, the control goroutine takes and evicts as fast as it can: no check ever touches a
// cell that belongs to another counter, and no charge is lost.
func TestStressNoReuseUnderAHolderAndNoLostCharge(t *testing.T) {
	const workers, keys = 8, 300
	rounds := 3000
	if testing.Short() {
		rounds = 500
	}
	var (
		owner   sync.Map // *quota.Cell -> *atomic.Uint64: whose it is, by Made
		pending sync.Map // Made -> *atomic.Int64: charges not yet seen
		charged atomic.Int64
		wrong   atomic.Int64
	)
	l := New(Config{Slots: 64, Prepare: func(s *Slot) {
		o, _ := owner.LoadOrStore(s.Cell, new(atomic.Uint64))
		o.(*atomic.Uint64).Store(s.Made)
		pending.Store(s.Made, new(atomic.Int64))
	}})
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(w), 1))
			for range rounds {
				pin := l.Pin(rnd.Uint32())
				k := key(rnd.Uint64N(keys) + 1)
				s := l.Lookup(k.ID)
				if s == nil {
					s = l.Make(k)
				}
				if s != nil {
					runtime.Gosched()
					n, _ := pending.Load(s.Made)
					n.(*atomic.Int64).Add(1)
					charged.Add(1)
					o, _ := owner.Load(s.Cell)
					if o.(*atomic.Uint64).Load() != s.Made {
						wrong.Add(1)
					}
					l.MarkDirty(s)
				}
				pin.Unpin()
			}
		})
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	var seen int64
	drain := func() {
		l.TakeMade(func(*Slot) {})
		l.TakeDirty(func(s *Slot) {
			n, _ := pending.Load(s.Made)
			seen += n.(*atomic.Int64).Swap(0)
		})
	}
	freed := 0
	clean := func(s *Slot) bool { n, _ := pending.Load(s.Made); return n.(*atomic.Int64).Load() == 0 }
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		drain()
		for _, s := range append([]*Slot(nil), l.Live()...) {
			if rand.IntN(2) == 0 {
				l.Remove(s)
			}
		}
		freed += l.Reclaim(clean)
		runtime.Gosched()
	}
	drain()
	if wrong.Load() != 0 {
		t.Errorf("%d charges went to another counter's cell", wrong.Load())
	}
	if seen != charged.Load() {
		t.Errorf("%d charges seen of %d", seen, charged.Load())
	}
	if freed < 64 {
		t.Errorf("only %d slots freed: the stress reuses nothing", freed)
	}
}

func BenchmarkLookup(b *testing.B) {
	l := New(Config{})
	for n := uint64(1); n <= 10_000; n++ {
		l.Make(key(n))
	}
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		hint, n := rand.Uint32(), uint64(1)
		for pb.Next() {
			pin := l.Pin(hint)
			s := l.Lookup(wirev1.ID{Hi: n * 7919, Lo: n})
			l.MarkDirty(s)
			pin.Unpin()
			n = n%10_000 + 1
		}
	})
}
