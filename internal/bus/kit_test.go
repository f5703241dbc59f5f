package bus

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/weirproxy/weir/internal/embedded"
)

// go-metrics, which Sarama uses, keeps one ticking goroutine for the life of a process.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("github.com/rcrowley/go-metrics.(*meterArbiter).tick"))
}

var names atomic.Int64

// name is one that no other test uses, on a real broker either.
func name(t *testing.T, what string) string {
	t.Helper()
	return fmt.Sprintf("weir-test.%s.%d.%d", what, time.Now().UnixNano(), names.Add(1))
}

// onEach runs f against the embedded broker, and against a real one where WEIR_TEST_KAFKA names it.
func onEach(t *testing.T, f func(t *testing.T, c *Client)) {
	t.Run("embedded", func(t *testing.T) {
		_, c := fake(t)
		f(t, c)
	})
	if addrs := os.Getenv("WEIR_TEST_KAFKA"); addrs != "" {
		t.Run("real", func(t *testing.T) {
			f(t, dial(t, Config{Brokers: strings.Split(addrs, ",")}))
		})
	}
}

func fake(t *testing.T) (*embedded.Kafka, *Client) {
	t.Helper()
	k, err := embedded.StartKafka("")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.Close)
	return k, dial(t, Config{Brokers: []string{k.Addr()}})
}

func dial(t *testing.T, cfg Config) *Client {
	t.Helper()
	cfg.BackoffMin, cfg.BackoffMax = 5*time.Millisecond, 50*time.Millisecond
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	c, err := Dial(ctx, cfg, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// topic makes a topic for one test.
func topic(t *testing.T, c *Client, partitions int32, settings ...string) string {
	t.Helper()
	n := name(t, "topic")
	makeTopic(t, c, n, partitions, settings...)
	t.Cleanup(func() {
		_ = c.admin(context.Background(), func(a sarama.ClusterAdmin) error { return a.DeleteTopic(n) })
	})
	return n
}

func makeTopic(t *testing.T, c *Client, n string, partitions int32, settings ...string) {
	t.Helper()
	entries := map[string]*string{}
	for i := 0; i+1 < len(settings); i += 2 {
		entries[settings[i]] = &settings[i+1]
	}
	eventually(t, "topic "+n+" is made", func() bool {
		err := c.admin(t.Context(), func(a sarama.ClusterAdmin) error {
			return a.CreateTopic(n, &sarama.TopicDetail{NumPartitions: partitions, ReplicationFactor: 1, ConfigEntries: entries}, false)
		})
		return err == nil
	})
	eventually(t, "topic "+n+" has leaders", func() bool {
		_, _, err := c.leader(t.Context(), n, partitions-1, time.Now())
		return err == nil
	})
}

// eventually waits for what must come, however slow the machine is.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !is(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("it never came that %s", what)
		}
	}
}

// run runs a part until the test ends or stop is called.
func run(t *testing.T, f func(context.Context) error) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- f(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("Run returned %v", err)
			}
		case <-time.After(30 * time.Second):
			t.Error("Run did not return")
		}
	})
	t.Cleanup(stop)
	return stop
}

// put writes a value and returns its acknowledgement.
func put(t *testing.T, w *Writer, topic string, partition int32, value string) Ack {
	t.Helper()
	for {
		got := make(chan Ack, 1)
		err := w.Send(topic, partition, nil, []byte(value), func(a Ack) { got <- a })
		if errors.Is(err, ErrBusy) {
			time.Sleep(time.Millisecond)
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		return <-got
	}
}

// mustPut writes values, each acknowledged before the next.
func mustPut(t *testing.T, c *Client, topic string, partition int32, values ...string) []Ack {
	t.Helper()
	w := NewWriter(c, WriterConfig{})
	defer w.Close()
	var out []Ack
	for _, v := range values {
		a := put(t, w, topic, partition, v)
		for errors.Is(a.Err, sarama.ErrNotLeaderForPartition) { // just made: the broker does not lead it yet
			a = put(t, w, topic, partition, v)
		}
		if a.Err != nil {
			t.Fatal(a.Err)
		}
		out = append(out, a)
	}
	return out
}

// tape keeps what callbacks tell, in order.
type tape struct {
	mu  sync.Mutex
	all []string
}

func (l *tape) add(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, fmt.Sprintf(format, args...))
}

func (l *tape) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.all, " ")
}

func (l *tape) has(s string) bool { return strings.Contains(" "+l.String()+" ", " "+s+" ") }
