package status

import (
	"testing"
	"time"
)

// Of all aggregators, the owner of usage partition 0 alone lets a silent pod go; none does before the
// topic is read.
func TestOnlyTheOwnerOfPartition0LetsASilentPodGo(t *testing.T) {
	for _, owner := range []bool{false, true} {
		var gone []string
		w := NewWatcher(Config{Fingerprint: 7, Owner0: func() bool { return owner }, Tombstone: func(pod string) { gone = append(gone, pod) }})
		w.book.Apply(heartbeat("shop/a", 0, "shop/Service/a"), 0)
		w.start = time.Now().Add(-2 * time.Hour)
		if w.tick(); len(gone) > 0 {
			t.Errorf("owner of partition 0 %v: %v let go before the topic was read", owner, gone)
		}
		w.publish()
		if w.tick(); (len(gone) == 1) != owner {
			t.Errorf("owner of partition 0 %v: let go %v", owner, gone)
		}
	}
}
