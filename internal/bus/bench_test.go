package bus

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/weirproxy/weir/internal/embedded"
)

// The path of one record of 500 bytes: Send to its acknowledgement (acks=all), and Send to Handle. On
// a real broker with WEIR_TEST_KAFKA, else on the embedded one.
func BenchmarkRecord(b *testing.B) {
	c := benchClient(b)
	top := name(&testing.T{}, "bench")
	if err := benchTopic(c, top); err != nil {
		b.Fatal(err)
	}
	w := NewWriter(c, WriterConfig{})
	defer w.Close()
	value := make([]byte, 500)
	b.Run("acknowledged", func(b *testing.B) {
		got := make(chan Ack, 1)
		for b.Loop() {
			if err := w.Send(top, 0, nil, value, func(a Ack) { got <- a }); err != nil {
				b.Fatal(err)
			}
			if a := <-got; a.Err != nil {
				b.Fatal(a.Err)
			}
		}
	})
	b.Run("handled", func(b *testing.B) {
		got, ready := make(chan Message, 1), make(chan struct{})
		r := NewReader(c, ReaderConfig{Topic: top, Partitions: map[int32]From{0: {Newest: true}},
			Handle: func(m Message) { got <- m }, CaughtUp: func(int32) { close(ready) }})
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- r.Run(ctx) }()
		<-ready
		acked := make(chan Ack, 1)
		for b.Loop() {
			if err := w.Send(top, 0, nil, value, func(a Ack) { acked <- a }); err != nil {
				b.Fatal(err)
			}
			<-got
			<-acked
		}
		cancel()
		if err := <-done; err != nil {
			b.Fatal(err)
		}
	})
}

func benchClient(b *testing.B) *Client {
	b.Helper()
	brokers := os.Getenv("WEIR_TEST_KAFKA")
	if brokers == "" {
		k, err := embedded.StartKafka("")
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(k.Close)
		brokers = k.Addr()
	}
	c, err := Dial(context.Background(), Config{Brokers: strings.Split(brokers, ",")}, zap.NewNop())
	if err != nil {
		b.Fatal(err)
	}
	return c
}

func benchTopic(c *Client, top string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	all := Topics{Usage: top, Decisions: top + ".d", Policies: top + ".p", Status: top + ".s", Partitions: 1, Replication: 1}
	if _, err := c.Ensure(ctx, all, false); err != nil {
		return err
	}
	for {
		if _, _, err := c.leader(ctx, top, 0, time.Now()); err == nil {
			return nil
		}
		if !pause(ctx, 10*time.Millisecond) {
			return ctx.Err()
		}
	}
}
