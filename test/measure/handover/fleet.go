package main

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"google.golang.org/protobuf/proto"

	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/internal/bus"
	"github.com/weirproxy/weir/test/world"
)

// One target a partition, so that each partition has its share of the load.
const (
	partitions  = 4
	flushPeriod = 50 * time.Millisecond
)

// targets are one name a partition.
func targets() []string {
	names := make([]string, 0, partitions)
	seen := map[int32]bool{}
	for i := 0; len(names) < partitions; i++ {
		name := fmt.Sprintf("orders-%d", i)
		p := wirev1.Partition("shop/Service/"+name, partitions)
		if !seen[p] {
			seen[p] = true
			names = append(names, name)
		}
	}
	return names
}

// everyTarget counts by client on all of the fleet's targets, below any limit.
func everyTarget() string {
	doc := "apiVersion: weirproxy.dev/v1alpha1\nkind: QuotaPolicy\nmetadata: {name: orders, namespace: shop}\nspec:\n  targetRefs:\n"
	for _, name := range targets() {
		doc += fmt.Sprintf("  - {group: \"\", kind: Service, name: %s}\n", name)
	}
	return doc + "  client: [{source: RemoteAddress}]\n" +
		"  limits:\n  - {name: each-client, counters: [Client], rates: [{limit: 100000000, window: 1h}]}\n"
}

// fleet sends the reports of one synthetic pod a target, each flush period every counter.
type fleet struct {
	cancel  context.CancelFunc
	wg      sync.WaitGroup
	watch   *watch
	updates atomic.Int64
	units   atomic.Int64
}

func newFleet(w *world.World, updates int) *fleet {
	ctx, cancel := context.WithCancel(context.Background())
	f := &fleet{cancel: cancel, watch: newWatch()}
	w.T.Cleanup(f.stop)
	c, err := bus.Dial(ctx, bus.Config{Brokers: []string{w.Kafka.Addr()}, ClientID: "fleet"}, zap.NewNop())
	w.Must(err)
	topics := bus.Topics{}.WithDefaults()
	logID, err := c.TopicID(ctx, topics.Usage)
	w.Must(err)
	key, err := os.ReadFile(w.Key)
	w.Must(err)
	keys, err := wirev1.NewKeys(key)
	w.Must(err)

	writer := bus.NewWriter(c, bus.WriterConfig{})
	f.goRun(ctx, writer.Run)
	f.goRun(ctx, f.watch.reader(c, topics.Decisions).Run)
	each := updates / partitions * int(flushPeriod) / int(time.Second)
	f.goRun(ctx, func(ctx context.Context) error {
		pods := make([]*pod, 0, partitions)
		for i, name := range targets() {
			pods = append(pods, newPod(i, "shop/Service/"+name, each, keys, logID))
		}
		f.report(ctx, writer, topics.Usage, pods)
		return nil
	})
	return f
}

func (f *fleet) goRun(ctx context.Context, run func(context.Context) error) {
	f.wg.Go(func() { _ = run(ctx) })
}

// stop ends the load after its last reports have been acknowledged. It may be called again.
func (f *fleet) stop() {
	f.cancel()
	f.wg.Wait()
}

// report lets each pod send once a flush period until ctx ends, and then until all is acknowledged.
func (f *fleet) report(ctx context.Context, w *bus.Writer, topic string, pods []*pod) {
	tick := time.NewTicker(flushPeriod)
	defer tick.Stop()
	for ctx.Err() == nil {
		<-tick.C
		for _, p := range pods {
			if n := p.send(w, topic); n > 0 {
				f.updates.Add(int64(n))
			}
		}
	}
	for _, p := range pods {
		f.units.Add(int64(p.acknowledged()))
	}
}

// missing is what Redis lacks of all units acknowledged, once it has had time to take them in.
func (f *fleet) missing(w *world.World) int64 {
	last := int64(-1)
	for range 50 {
		got, err := w.Total("each-client")
		w.Must(err)
		last = f.units.Load() - int64(got) //nolint:gosec // far below
		if last == 0 {
			return 0
		}
		time.Sleep(200 * time.Millisecond)
	}
	return last
}

// pod counts one unit more of each of its counters in every report.
type pod struct {
	target    string
	partition int32
	report    *wirev1.UsageReport
	mu        sync.Mutex
	acked     uint64 // reports, and so units of each counter
	sent      uint64
	waiting   bool
}

func newPod(i int, target string, counters int, keys wirev1.Keys, logID bus.TopicID) *pod {
	p := &pod{target: target, partition: wirev1.Partition(target, partitions)}
	entries := make([]*wirev1.UsageEntry, counters)
	for k := range entries {
		identity := wirev1.Identity{
			Target: p.target, Policy: "shop/orders", Limit: "each-client", Algorithm: wirev1.SlidingWindow, WindowMillis: 3_600_000,
			Dimensions: []wirev1.Dimension{{Kind: wirev1.DimClientRemoteAddress, Value: fmt.Sprintf("10.%d.%d.%d/32", i, k/250, k%250)}},
		}
		text := identity.Append(nil)
		id := keys.ID(text)
		entries[k] = &wirev1.UsageEntry{IdHi: id.Hi, IdLo: id.Lo, Made: uint64(k), Demand: 20, SpanMs: 50, Identity: text} //nolint:gosec // small
	}
	p.report = &wirev1.UsageReport{
		KeyFingerprint: keys.Fingerprint(), Pod: fmt.Sprintf("shop/orders-%d-0", i), PodEpoch: uint64(time.Now().UnixNano()), //nolint:gosec // random enough
		LogId: logID[:], Targets: []*wirev1.TargetUsage{{Target: p.target, Entries: entries}},
	}
	return p
}

// send reports unless the report before is still under way; it returns how many counters it carried.
func (p *pod) send(w *bus.Writer, topic string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.waiting {
		return 0
	}
	p.sent++
	p.report.Sequence++
	for _, e := range p.report.GetTargets()[0].GetEntries() {
		e.Cumulative, e.Base, e.Offered = p.sent, p.acked, p.sent
		if p.acked > 0 {
			e.Identity = nil
		}
	}
	value, err := proto.Marshal(&wirev1.UsageMessage{Body: &wirev1.UsageMessage_Report{Report: p.report}})
	if err != nil {
		return 0
	}
	sent := p.sent
	p.waiting = true
	if err := w.Send(topic, p.partition, nil, value, func(a bus.Ack) { p.done(a, sent) }); err != nil {
		p.waiting = false
		return 0
	}
	return len(p.report.GetTargets()[0].GetEntries())
}

func (p *pod) done(a bus.Ack, sent uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting = false
	if a.Err == nil {
		p.acked = sent
	}
}

// acknowledged waits for the last report and returns the units of all counters that were acknowledged.
func (p *pod) acknowledged() uint64 {
	for range 100 {
		p.mu.Lock()
		waiting := p.waiting
		p.mu.Unlock()
		if !waiting {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.acked * uint64(len(p.report.GetTargets()[0].GetEntries()))
}
