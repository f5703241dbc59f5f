package main

import (
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/internal/bus"
)

// watch notes, for each partition, the longest time between two headers since mark where the owner
// epoch changed in between.
type watch struct {
	mu     sync.Mutex
	marked bool
	last   map[int32]seen
	gap    map[int32]time.Duration
}

type seen struct {
	epoch int64
	at    time.Time
}

func newWatch() *watch { return &watch{last: map[int32]seen{}, gap: map[int32]time.Duration{}} }

func (w *watch) reader(c *bus.Client, topic string) *bus.Reader {
	from := map[int32]bus.From{}
	for p := range int32(partitions) {
		from[p] = bus.From{Newest: true}
	}
	return bus.NewReader(c, bus.ReaderConfig{Topic: topic, Partitions: from, Handle: w.handle})
}

func (w *watch) handle(m bus.Message) {
	var b wirev1.DecisionBatch
	if proto.Unmarshal(m.Value, &b) != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	now, before := seen{b.GetHeader().GetEpoch(), m.Appended}, w.last[m.Partition]
	if w.marked && !before.at.IsZero() && now.epoch != before.epoch {
		w.gap[m.Partition] = max(w.gap[m.Partition], now.at.Sub(before.at))
	}
	w.last[m.Partition] = now
}

// mark begins the drill.
func (w *watch) mark() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.marked = true
}

// gaps returns how many partitions changed owners since mark, and their gaps in ms.
func (w *watch) gaps() (moved int, mean, worst float64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, g := range w.gap {
		ms := float64(g) / float64(time.Millisecond)
		moved++
		mean += ms
		worst = max(worst, ms)
	}
	if moved > 0 {
		mean /= float64(moved)
	}
	return moved, mean, worst
}
