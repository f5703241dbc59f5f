package bus

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/weirproxy/weir/internal/embedded"
)

// Brokers come later than we do: one line says what is waited for, one that it has come.
func TestDialWaitsForBrokers(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	_ = l.Close()
	waiting := make(chan struct{})
	states := &tape{}
	cfg := Config{Brokers: []string{addr}, BackoffMin: time.Millisecond, BackoffMax: 5 * time.Millisecond, State: func(r string) {
		if states.add("waiting=%v", r != ""); r != "" {
			close(waiting)
		}
	}}
	logs, seen := observer.New(zap.DebugLevel)
	done := make(chan error, 1)
	go func() {
		_, err := Dial(t.Context(), cfg, zap.New(logs))
		done <- err
	}()
	<-waiting
	k, err := embedded.StartKafka(addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.Close)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if want := "waiting=true waiting=false"; states.String() != want {
		t.Errorf("states %q, want %q", states, want)
	}
	if n := seen.Len(); n != 2 {
		t.Errorf("%d log lines, want 2: %v", n, seen.All())
	}
}

func TestDialStopsWithItsContextAndNamesTheBrokers(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	_, err := Dial(ctx, Config{Brokers: []string{"127.0.0.1:1"}, State: func(string) { cancel() }}, zap.NewNop())
	if err == nil || !strings.Contains(err.Error(), "127.0.0.1:1") {
		t.Fatalf("err %v", err)
	}
}

func TestTopicQuestions(t *testing.T) {
	onEach(t, func(t *testing.T, c *Client) {
		top := topic(t, c, 3)
		acks := mustPut(t, c, top, 2, "a", "b")
		n, err := c.Partitions(t.Context(), top)
		if err != nil || n != 3 {
			t.Errorf("partitions %d, %v", n, err)
		}
		id, err := c.TopicID(t.Context(), top)
		if err != nil || id == (TopicID{}) {
			t.Errorf("id %v, %v", id, err)
		}
		oldest, err := c.Oldest(t.Context(), top, 2)
		if err != nil || oldest != 0 {
			t.Errorf("oldest %d, %v", oldest, err)
		}
		newest, err := c.Newest(t.Context(), top, 2)
		if err != nil || newest != 2 {
			t.Errorf("newest %d, %v", newest, err)
		}
		at, err := c.OffsetAt(t.Context(), top, 2, acks[0].Appended.Add(-time.Hour))
		if err != nil || at != 0 {
			t.Errorf("an hour ago %d, %v", at, err)
		}
		at, err = c.OffsetAt(t.Context(), top, 2, acks[1].Appended.Add(time.Hour))
		if err != nil || at != 2 {
			t.Errorf("in an hour %d, %v", at, err)
		}
		for _, ask := range []func() error{
			func() error { _, err := c.TopicID(t.Context(), top+".none"); return err },
			func() error { _, err := c.Partitions(t.Context(), top+".none"); return err },
			func() error { _, err := c.Newest(t.Context(), top, 3); return err },
			func() error { _, err := c.Newest(t.Context(), top, -1); return err },
		} {
			if err := ask(); !errors.Is(err, ErrNoTopic) {
				t.Errorf("got %v, want ErrNoTopic", err)
			}
		}
	})
}

func TestQuestionsEndWithTheirContext(t *testing.T) {
	k, c := fake(t)
	top := topic(t, c, 1)
	up := hold(k, -1)
	defer up()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Newest(ctx, top, 0); !errors.Is(err, context.Canceled) {
		t.Fatalf("err %v", err)
	}
}

func TestADeletedTopicIsGone(t *testing.T) {
	onEach(t, func(t *testing.T, c *Client) {
		top := topic(t, c, 1)
		if err := c.admin(t.Context(), func(a sarama.ClusterAdmin) error { return a.DeleteTopic(top) }); err != nil {
			t.Fatal(err)
		}
		eventually(t, "it is gone", func() bool {
			_, err := c.TopicID(t.Context(), top)
			return errors.Is(err, ErrNoTopic)
		})
	})
}
