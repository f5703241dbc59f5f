package publish

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"go.uber.org/zap"
	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weirproxy/weir/api/v1alpha1"
	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/internal/bus"
	"github.com/weirproxy/weir/internal/embedded"
	"github.com/weirproxy/weir/internal/policy"
	"github.com/weirproxy/weir/internal/policytopic"
)

// go-metrics, which Sarama uses, keeps one ticking goroutine for the life of a process.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("github.com/rcrowley/go-metrics.(*meterArbiter).tick"))
}

// kit is Kafka with weir's topics, under names of the test's own.
type kit struct {
	t      *testing.T
	client *bus.Client
	topics bus.Topics
	keys   wirev1.Keys
}

// onEach runs f on the embedded broker, and on a real one where WEIR_TEST_KAFKA names it.
func onEach(t *testing.T, f func(t *testing.T, k *kit)) {
	t.Run("embedded", func(t *testing.T) { f(t, newKit(t, startBroker(t, "").Addr())) })
	if addrs := os.Getenv("WEIR_TEST_KAFKA"); addrs != "" {
		t.Run("real", func(t *testing.T) { f(t, newKit(t, strings.Split(addrs, ",")...)) })
	}
}

// startBroker starts a broker at an address; "": at a free port.
func startBroker(t *testing.T, addr string) *embedded.Kafka {
	t.Helper()
	broker, err := embedded.StartKafka(addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(broker.Close)
	return broker
}

func newKit(t *testing.T, brokers ...string) *kit {
	t.Helper()
	keys, err := wirev1.NewKeys(make([]byte, wirev1.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	prefix := fmt.Sprintf("weir-test.publish.%d.", time.Now().UnixNano())
	k := &kit{t: t, client: dial(t, brokers...), keys: keys, topics: bus.Topics{
		Usage: prefix + "usage", Decisions: prefix + "decisions", Policies: prefix + "policies", Status: prefix + "status",
		Partitions: 1, Replication: 1,
	}}
	k.ensure()
	return k
}

func dial(t *testing.T, brokers ...string) *bus.Client {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	c, err := bus.Dial(ctx, bus.Config{Brokers: brokers, BackoffMin: 5 * time.Millisecond, BackoffMax: 50 * time.Millisecond}, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (k *kit) ensure() {
	k.t.Helper()
	if _, err := k.client.Ensure(k.t.Context(), k.topics, false); err != nil {
		k.t.Fatal(err)
	}
}

// open runs a Topic until the test ends or stop is called, and waits until it has read the topic.
func (k *kit) open(change ...func(*Config)) (t *Topic, stop func()) {
	k.t.Helper()
	cfg := Config{Name: k.topics.Policies, Keys: k.keys, Log: zap.NewNop(), Pause: time.Millisecond}
	for _, f := range change {
		f(&cfg)
	}
	t = New(cfg)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- t.Run(ctx, k.client) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			k.t.Errorf("Run returned %v", err)
		}
	})
	k.t.Cleanup(stop)
	k.wait(t.Ready(), "the topic is read")
	return t, stop
}

func (k *kit) wait(c <-chan struct{}, what string) {
	k.t.Helper()
	select {
	case <-c:
	case <-time.After(30 * time.Second):
		k.t.Fatalf("it never came that %s", what)
	}
}

func (k *kit) eventually(what string, is func() bool) {
	k.t.Helper()
	for end := time.Now().Add(30 * time.Second); !is(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			k.t.Fatalf("it never came that %s", what)
		}
	}
}

// end is the offset of the next record: it tells whether anything was written.
func (k *kit) end() int64 {
	k.t.Helper()
	n, err := k.client.Newest(k.t.Context(), k.topics.Policies, 0)
	if err != nil {
		k.t.Fatal(err)
	}
	return n
}

// put writes a record as another program would.
func (k *kit) put(key string, value []byte) {
	k.t.Helper()
	w := bus.NewWriter(k.client, bus.WriterConfig{})
	defer w.Close()
	acked := make(chan bus.Ack, 1)
	if err := w.Send(k.topics.Policies, 0, []byte(key), value, func(a bus.Ack) { acked <- a }); err != nil {
		k.t.Fatal(err)
	}
	if a := <-acked; a.Err != nil {
		k.t.Fatal(a.Err)
	}
}

func (k *kit) installation(fingerprint uint32) {
	k.t.Helper()
	value, err := proto.Marshal(&wirev1.PolicyMessage{Body: &wirev1.PolicyMessage_Installation{
		Installation: &wirev1.Installation{Partitions: 1, KeyFingerprint: fingerprint},
	}})
	if err != nil {
		k.t.Fatal(err)
	}
	k.put(policytopic.InstallationKey, value)
}

func document(t *testing.T, name, limit string) *v1alpha1.QuotaPolicy {
	t.Helper()
	docs, err := policy.Parse("test", []byte(`apiVersion: weirproxy.dev/v1alpha1
kind: QuotaPolicy
metadata: {name: `+name+`, namespace: shop}
spec:
  targetRefs: [{group: "", kind: Service, name: orders}]
  client: [{source: Header, name: x-api-key}]
  limits:
  - name: all
    counters: [Client]
    rates: [{limit: `+limit+`, window: 1s}]
    overrides: [{clients: [{source: Header, name: x-api-key, value: hunter2}], unlimited: true}]
`))
	if err != nil {
		t.Fatal(err)
	}
	return docs[0]
}

// desired is a policy whose target selects pods by labels in two orders.
func desired(t *testing.T, name, limit string, generation int64) Desired {
	return Desired{Document: document(t, name, limit), Generation: generation, Targets: []policy.Target{
		{Name: "shop/Service/orders", Selector: map[string]string{"app": "orders", "tier": "web", "a": "b"}},
	}}
}

func mustPublish(t *testing.T, topic *Topic, d Desired) Published {
	t.Helper()
	p, err := topic.Publish(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func name(n string) types.NamespacedName { return types.NamespacedName{Namespace: "shop", Name: n} }
