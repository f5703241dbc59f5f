//go:build !race

package ledger

import (
	"runtime"
	"testing"

	"github.com/weirproxy/weir/internal/quota"
)

// The stated bound: whatever is offered, no more cells than Config allows, and of Go's heap no more than 640 bytes for
// each slot and its identity's bytes.
func TestAMillionKeysTakeBoundedMemory(t *testing.T) {
	const slots, reserve, offered, heapBytes = 20_000, 16, 1_000_000, 640
	cells := 0
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	l := New(Config{
		Slots: slots, Reserve: reserve,
		Cells:   func(n int) []quota.Cell { cells += n; return NewCells(n) },
		Prepare: func(s *Slot) { s.Counter = new(quota.Counter) },
	})
	k := key(1)
	k.Identity = append([]byte("shop/orders, each client, one minute; header x-api-key: "), make([]byte, 24)...)
	first := map[uint64]*Slot{}
	for n := uint64(1); n <= offered; n++ {
		k.ID = key(n).ID
		copy(k.Identity[len(k.Identity)-8:], []byte{byte(n), byte(n >> 8), byte(n >> 16)})
		if s := l.Make(k); s != nil && n <= 100 {
			first[n] = s
		}
	}
	l.TakeMade(func(*Slot) {})
	runtime.GC()
	runtime.ReadMemStats(&after)
	if n, bytes := l.Size(); n != slots || bytes > slots*identityRoom || cells > slots+reserve+segmentCells {
		t.Errorf("%d slots in %d cells, %d bytes of identities", n, cells, bytes)
	}
	if each := float64(int64(after.HeapAlloc)-int64(before.HeapAlloc)) / slots; each > heapBytes {
		t.Errorf("%.0f bytes of heap for each slot, at most %d", each, heapBytes)
	} else {
		t.Logf("%.0f bytes of heap for each slot", each)
	}
	for n, s := range first {
		if l.Lookup(key(n).ID) != s {
			t.Fatalf("counter %d, which was there before, has lost its slot", n)
		}
	}
	runtime.KeepAlive(l)
}
