package installation

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"google.golang.org/protobuf/proto"

	"github.com/weirproxy/weir/aggregator/store"
	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/internal/bus"
	"github.com/weirproxy/weir/internal/checkup"
	"github.com/weirproxy/weir/internal/embedded"
	"github.com/weirproxy/weir/internal/policy"
	"github.com/weirproxy/weir/internal/policytopic"
)

// go-metrics, which Sarama uses, keeps one ticking goroutine for the life of a process.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("github.com/rcrowley/go-metrics.(*meterArbiter).tick"))
}

const (
	partitions  = 2
	ownVersion  = "v1.2.3"
	ordersLimit = "rates: [{limit: 100, window: 1s}]"
	ordersPod   = "shop/orders-a"
)

const orders = `apiVersion: weirproxy.dev/v1alpha1
kind: QuotaPolicy
metadata: {name: orders, namespace: shop}
spec:
  targetRefs: [{kind: Service, name: orders}]
  limits:
  - name: all
    ` + ordersLimit + `
`

// world is a healthy installation on an embedded Kafka and Redis, with an owner and a sidecar that are made up: what they
// write is what a test says.
type world struct {
	t       *testing.T
	kafka   *embedded.Kafka
	redis   *embedded.Redis
	client  *bus.Client
	keys    wirev1.Keys
	keyFile string
	usageID bus.TopicID
	policy  int64 // version of shop/orders

	mu    sync.Mutex
	owner func(partition int32, h *wirev1.Header) bool // changes a header; false: it is not written
}

func newWorld(t *testing.T, opts ...kfake.Opt) *world {
	t.Helper()
	w := &world{t: t}
	var err error
	w.kafka, err = embedded.StartKafka("", opts...)
	w.must(err)
	t.Cleanup(w.kafka.Close)
	w.redis, err = embedded.StartRedis("")
	w.must(err)
	t.Cleanup(w.redis.Close)
	raw := make([]byte, wirev1.KeySize)
	w.keys, err = wirev1.NewKeys(raw)
	w.must(err)
	w.keyFile = filepath.Join(t.TempDir(), "key")
	w.must(os.WriteFile(w.keyFile, raw, 0o600))
	return w
}

// begin makes topics and lets the owner and the sidecar speak.
func (w *world) begin() *world {
	w.t.Helper()
	var err error
	w.client, err = bus.Dial(w.t.Context(), bus.Config{Brokers: []string{w.kafka.Addr()}}, zap.NewNop())
	w.must(err)
	w.ensure()
	w.install(nil)
	w.policy = w.publish(policy.OriginCLI, orders)
	w.status(nil)
	producer := w.producer()
	var deciding sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	deciding.Go(func() { w.decide(ctx, producer) })
	w.t.Cleanup(func() {
		cancel()
		deciding.Wait()
		producer.Close()
	})
	return w
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) ensure() {
	w.t.Helper()
	_, err := w.client.Ensure(w.t.Context(), bus.Topics{Partitions: partitions}, false)
	w.must(err)
	id, err := w.client.TopicID(w.t.Context(), "weir.usage")
	w.must(err)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.usageID = id
}

// producer is one that knows no topic yet: each has an id that it would remember.
func (w *world) producer() *kgo.Client {
	w.t.Helper()
	p, err := kgo.NewClient(kgo.SeedBrokers(w.kafka.Addr()), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	w.must(err)
	return p
}

// write appends a record of an age and returns its offset.
func (w *world) write(topic string, partition int32, key string, value []byte, age time.Duration) int64 {
	w.t.Helper()
	r := &kgo.Record{Topic: topic, Partition: partition, Key: []byte(key), Value: value, Timestamp: time.Now().Add(-age)}
	p := w.producer()
	defer p.Close()
	w.must(p.ProduceSync(w.t.Context(), r).FirstErr())
	return r.Offset
}

func (w *world) marshal(m proto.Message) []byte {
	w.t.Helper()
	b, err := proto.Marshal(m)
	w.must(err)
	return b
}

func (w *world) install(change func(*wirev1.Installation)) {
	w.t.Helper()
	decisions, err := w.client.TopicID(w.t.Context(), "weir.decisions")
	w.must(err)
	i := &wirev1.Installation{Partitions: partitions, KeyFingerprint: w.keys.Fingerprint(), UsageTopicId: w.usageID[:], DecisionsTopicId: decisions[:]}
	if change != nil {
		change(i)
	}
	value, err := policytopic.InstallationValue(i)
	w.must(err)
	w.write("weir.policies", 0, policytopic.InstallationKey, value, 0)
}

func (w *world) publish(origin, document string) int64 {
	w.t.Helper()
	docs, err := policy.Parse("policy.yaml", []byte(document))
	w.must(err)
	r, err := policytopic.NewRecord(policytopic.Source{Origin: origin, Document: docs[0]}, w.keys)
	w.must(err)
	return w.write("weir.policies", 0, r.Key.String(), r.Value, 0)
}

// status writes what the sidecar of shop/orders-a says, changed.
func (w *world) status(change func(*wirev1.PodStatus)) { w.t.Helper(); w.statusOfAge(0, change) }

func (w *world) statusOfAge(age time.Duration, change func(*wirev1.PodStatus)) {
	w.t.Helper()
	s := &wirev1.PodStatus{
		Pod: ordersPod, PodEpoch: 7, Targets: []string{"shop/Deployment/orders", "shop/Service/orders"}, Ready: true,
		ProgramVersion: ownVersion, KeyFingerprint: w.keys.Fingerprint(),
		Policies: []*wirev1.AppliedPolicy{{Key: "cli/shop/orders", Version: w.policy, Seen: w.policy}},
	}
	if change != nil {
		change(s)
	}
	w.write("weir.status", 0, s.Pod, w.marshal(s), age)
}

func (w *world) ownerSays(f func(int32, *wirev1.Header) bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.owner = f
}

// decide writes headers until the test ends.
func (w *world) decide(ctx context.Context, producer *kgo.Client) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for sequence := uint64(1); ; sequence++ {
		for p := range int32(partitions) {
			h := &wirev1.Header{KeyFingerprint: w.keys.Fingerprint(), Epoch: 3, Sequence: sequence, Instance: "weir-aggregator-0"}
			w.speak(ctx, producer, p, h)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// speak writes a header, if the owner does. Once ownerSays has returned no older one is under way.
func (w *world) speak(ctx context.Context, producer *kgo.Client, partition int32, h *wirev1.Header) {
	w.mu.Lock()
	defer w.mu.Unlock()
	id := w.usageID
	h.LogId = id[:]
	if w.owner != nil && !w.owner(partition, h) {
		return
	}
	value, _ := proto.Marshal(&wirev1.DecisionBatch{Header: h})
	producer.ProduceSync(ctx, &kgo.Record{Topic: "weir.decisions", Partition: partition, Value: value, Timestamp: time.Now()})
}

func (w *world) config() Config {
	return Config{
		Kafka: bus.Config{Brokers: []string{w.kafka.Addr()}}, Redis: store.Config{Addresses: []string{w.redis.Addr()}},
		KeyFile: w.keyFile, Version: ownVersion,
	}
}

// check runs all checks.
func check(t *testing.T, cfg Config) *checkup.Report {
	t.Helper()
	c := New(cfg)
	defer c.Close()
	return checkup.Run(t.Context(), c.All(), 10*time.Second)
}

// found is the first finding of a check at a level.
func found(r *checkup.Report, name string, level checkup.Level) (checkup.Finding, bool) {
	for _, f := range r.Findings {
		if f.Check == name && f.Level == level {
			return f, true
		}
	}
	return checkup.Finding{}, false
}

func text(r *checkup.Report) string { return strings.Join(r.Lines(0), "\n") }

func nopLog() *zap.Logger { return zap.NewNop() }

// file is one that holds text.
func (w *world) file(text string) string {
	w.t.Helper()
	path := filepath.Join(w.t.TempDir(), "secret")
	w.must(os.WriteFile(path, []byte(text), 0o600))
	return path
}
