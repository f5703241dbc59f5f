package partition

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weirproxy/weir/aggregator/store"
	wirev1 "github.com/weirproxy/weir/api/wire/v1"
)

// Whatever is lost, repeated, reordered or replayed, and whoever owned the partition, each admitted
// unit counts once: the stored total equals what the pods admitted (DESIGN 3, 4).
func TestEachUnitCountsOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		ids := [][]byte{identityOf("a", time.Second), identityOf("b", time.Second), identityOf("c", time.Second)}
		pods := []*podSim{w.pod("shop/x", 1), w.pod("shop/y", 2)}
		var old []*wirev1.UsageMessage // for repeats, late
		var late []*store.Flush
		w.flushBatch = rapid.IntRange(1, 3).Draw(t, "flush batch")
		w.claim()
		steps := map[string]func(*rapid.T){
			"": func(*rapid.T) {},
			"admit": func(t *rapid.T) {
				rapid.SampledFrom(pods).Draw(t, "pod").admit(rapid.SampledFrom(ids).Draw(t, "id"), rapid.Uint64Range(1, 50).Draw(t, "n"))
			},
			"report": func(t *rapid.T) {
				m, acked := rapid.SampledFrom(pods).Draw(t, "pod").report()
				switch rapid.SampledFrom([]string{"ok", "ok", "lost", "ack lost"}).Draw(t, "fate") {
				case "ok":
					w.append(m)
					acked()
				case "ack lost":
					w.append(m)
				}
				old = append(old, m)
			},
			"repeat": func(t *rapid.T) { // a producer's time-out that was appended after all
				if len(old) > 0 {
					w.append(old[max(0, len(old)-rapid.IntRange(1, 3).Draw(t, "back"))])
				}
			},
			"read": func(t *rapid.T) { w.read(rapid.IntRange(1, 5).Draw(t, "n")) },
			"load": func(*rapid.T) { w.load() },
			"flush": func(t *rapid.T) {
				f := w.own.Flush(w.now, true)
				if f == nil {
					return
				}
				var err error
				switch rapid.SampledFrom([]string{"ok", "ok", "lost", "answer lost", "late"}).Draw(t, "fate") {
				case "ok":
					err = w.store.Flush(t.Context(), f)
				case "lost":
					err = store.ErrUnavailable
				case "answer lost":
					_ = w.store.Flush(t.Context(), f)
					err = store.ErrUnavailable
				case "late":
					late = append(late, copyOf(f))
					err = store.ErrUnavailable
				}
				w.own.Flushed(err, w.now)
			},
			"late flush": func(t *rapid.T) {
				if len(late) > 0 {
					f := late[0]
					late = late[1:]
					_ = w.store.Flush(t.Context(), f)
				}
			},
			"store emptied": func(*rapid.T) {
				if w.mirrored() { // else owner and data are lost together (DESIGN 6)
					w.store.Empty()
				}
			},
			"new owner": func(*rapid.T) { w.claim() },
			"tick":      func(*rapid.T) { w.tick() },
		}
		steps["advance"] = func(t *rapid.T) { w.advance(time.Duration(rapid.IntRange(0, 40).Draw(t, "ms")) * time.Millisecond) }
		t.Repeat(steps)
		for _, p := range pods {
			p.deliver()
		}
		w.settle()
		for _, id := range ids {
			want := pods[0].admitted(id) + pods[1].admitted(id)
			if got := w.storedTotal(id); got != want {
				t.Fatalf("the store holds %d of %s, the pods admitted %d", got, w.keys.ID(id), want)
			}
		}
	})
}

// mirrored: the owner has in memory all that the store has.
func (w *world) mirrored() bool {
	for id := range w.store.Snapshot(0) {
		if c := w.own.counters[id]; c == nil || c.phase != live {
			return false
		}
	}
	return true
}

func copyOf(f *store.Flush) *store.Flush {
	out := *f
	out.Counters = slices.Clone(f.Counters)
	for i := range out.Counters {
		out.Counters[i].Fields = slices.Clone(out.Counters[i].Fields)
	}
	return &out
}
