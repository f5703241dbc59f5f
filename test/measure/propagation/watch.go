package main

import (
	"context"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"
	"google.golang.org/protobuf/proto"

	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/internal/bus"
	"github.com/weirproxy/weir/test/world"
)

// watch pairs reports with the first header that includes them.
type watch struct {
	mu     sync.Mutex
	open   []report // in the order of their offsets
	newest int64    // watermark
	at     time.Time
	oldest []float64
	recent []float64
}

// report is when its units were admitted, in wall time of this machine.
type report struct {
	offset         int64
	oldest, newest time.Time
}

func newWatch(w *world.World) *watch {
	ctx, cancel := context.WithCancel(context.Background())
	h := &watch{newest: -1}
	c, err := bus.Dial(ctx, bus.Config{Brokers: []string{w.Kafka.Addr()}, ClientID: "watch"}, zap.NewNop())
	w.Must(err)
	topics := bus.Topics{}.WithDefaults()
	partitions, err := c.Partitions(ctx, topics.Usage)
	w.Must(err)
	from := map[int32]bus.From{wirev1.Partition(world.Target, partitions): {Newest: true}}
	var wg, caught sync.WaitGroup
	caught.Add(2)
	for topic, handle := range map[string]func(bus.Message){topics.Usage: h.usage, topics.Decisions: h.decisions} {
		r := bus.NewReader(c, bus.ReaderConfig{Topic: topic, Partitions: from, Handle: handle, CaughtUp: func(int32) { caught.Done() }})
		wg.Go(func() { _ = r.Run(ctx) })
	}
	caught.Wait()
	w.T.Cleanup(func() { cancel(); wg.Wait() })
	return h
}

func (h *watch) usage(m bus.Message) {
	var u wirev1.UsageMessage
	if proto.Unmarshal(m.Value, &u) != nil || u.GetReport() == nil {
		return
	}
	r := report{offset: m.Offset}
	for _, t := range u.GetReport().GetTargets() {
		for _, e := range t.GetEntries() {
			if e.GetCumulative() == e.GetBase() {
				continue
			}
			newest := m.Appended.Add(-time.Duration(e.GetAgeMs()) * time.Millisecond)
			r.newest, r.oldest = newest, newest.Add(-time.Duration(e.GetSpanMs())*time.Millisecond)
		}
	}
	if r.newest.IsZero() {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if r.offset <= h.newest { // the header was read first
		h.close(r, h.at)
		return
	}
	h.open = append(h.open, r)
}

func (h *watch) decisions(m bus.Message) {
	now := time.Now()
	var b wirev1.DecisionBatch
	if proto.Unmarshal(m.Value, &b) != nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if b.GetHeader().GetWatermark() <= h.newest {
		return
	}
	h.newest, h.at = b.GetHeader().GetWatermark(), now
	n := 0
	for n < len(h.open) && h.open[n].offset <= h.newest {
		h.close(h.open[n], now)
		n++
	}
	h.open = h.open[n:]
}

func (h *watch) close(r report, at time.Time) {
	ms := func(t time.Time) float64 { return float64(at.Sub(t)) / float64(time.Millisecond) }
	h.oldest, h.recent = append(h.oldest, ms(r.oldest)), append(h.recent, ms(r.newest))
}

func (h *watch) result(r *result) {
	h.mu.Lock()
	defer h.mu.Unlock()
	r.Reports = len(h.oldest)
	r.OldestP50, r.OldestP99 = quantile(h.oldest, 0.5), quantile(h.oldest, 0.99)
	r.NewestP50, r.NewestP99 = quantile(h.recent, 0.5), quantile(h.recent, 0.99)
}

func quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(values))
	return s[min(len(s)-1, int(q*float64(len(s))))]
}
