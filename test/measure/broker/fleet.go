package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/weirproxy/weir/internal/bus"
	"github.com/weirproxy/weir/test/parts"
)

// fleet is many small clients of one partition, as the pods of one target are.
type fleet struct {
	t       parts.T
	topics  bus.Topics
	writers []*bus.Writer
	owner   *bus.Writer

	acked, failed, delivered atomic.Int64
}

// newFleet connects o.clients clients, each of which reads the decisions partition from now on.
func newFleet(t parts.T, addr string, o options) *fleet {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	t.Cleanup(func() { cancel(); wg.Wait() })
	f := &fleet{t: t, topics: bus.Topics{Partitions: 1, Replication: 1}.WithDefaults()}
	run := func(g func(context.Context) error) { wg.Go(func() { _ = g(ctx) }) }

	admin := dial(t, ctx, addr, "owner")
	if _, err := admin.Ensure(ctx, f.topics, false); err != nil {
		t.Fatalf("topics: %v", err)
	}
	f.owner = bus.NewWriter(admin, bus.WriterConfig{})
	run(f.owner.Run)
	var ready sync.WaitGroup
	ready.Add(o.clients)
	for i := range o.clients {
		c := dial(t, ctx, addr, fmt.Sprintf("pod-%d", i))
		w := bus.NewWriter(c, bus.WriterConfig{})
		f.writers = append(f.writers, w)
		run(w.Run)
		run(bus.NewReader(c, bus.ReaderConfig{
			Topic: f.topics.Decisions, Partitions: map[int32]bus.From{0: {Newest: true}},
			Handle:   func(bus.Message) { f.delivered.Add(1) },
			CaughtUp: func(int32) { ready.Done() },
		}).Run)
	}
	ready.Wait()
	return f
}

func dial(t parts.T, ctx context.Context, addr, id string) *bus.Client { //nolint:revive // t comes first in tests
	t.Helper()
	c, err := bus.Dial(ctx, bus.Config{Brokers: []string{addr}, ClientID: id}, zap.NewNop())
	if err != nil {
		t.Fatalf("connect: %v", err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// produce lets every client send its reports for the length, one unacknowledged at most.
func (f *fleet) produce(o options, length time.Duration) {
	var wg sync.WaitGroup
	for i, w := range f.writers {
		wg.Go(func() {
			time.Sleep(time.Duration(i) * time.Second / time.Duration(o.reportsPerPod*len(f.writers)))
			f.send(w, f.topics.Usage, o.reportSize, o.reportsPerPod, length)
		})
	}
	wg.Wait()
}

// broadcast sends batches to the partition that all clients read.
func (f *fleet) broadcast(o options, length time.Duration) {
	f.send(f.owner, f.topics.Decisions, o.batchSize, o.batches, length)
}

func (f *fleet) send(w *bus.Writer, topic string, size, rate int, length time.Duration) {
	value := make([]byte, size)
	tick := time.NewTicker(time.Second / time.Duration(rate))
	defer tick.Stop()
	for end := time.Now().Add(length); time.Now().Before(end); <-tick.C {
		err := w.Send(topic, 0, nil, value, func(a bus.Ack) {
			if a.Err != nil {
				f.failed.Add(1)
				return
			}
			f.acked.Add(1)
		})
		if err != nil {
			f.failed.Add(1)
		}
	}
}
