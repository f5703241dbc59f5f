package sidecar

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"

	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/internal/admin"
	"github.com/weirproxy/weir/internal/bus"
	"github.com/weirproxy/weir/internal/embedded"
	"github.com/weirproxy/weir/internal/policy"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		goleak.IgnoreTopFunction("github.com/rcrowley/go-metrics.(*meterArbiter).tick")) // Sarama's; one a process, for ever
}

const (
	target     = "shop/Deployment/orders"
	partitions = 4
	patience   = 30 * time.Second // before a test gives up; nothing is asserted of time
)

var identityKey = bytes.Repeat([]byte{7}, wirev1.KeySize)

func testKeys(t *testing.T) wirev1.Keys {
	t.Helper()
	keys, err := wirev1.NewKeys(identityKey)
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// installation is a broker with weir's topics, and this test as everyone else: it publishes policies
// and plays the owner of the target's partition.
type installation struct {
	t      *testing.T
	kafka  *embedded.Kafka
	client *bus.Client
	writer *bus.Writer
	keys   wirev1.Keys
	topics bus.Topics
	logID  []byte
	stop   func()

	mu        sync.Mutex
	last      map[series]uint64
	total     map[string]uint64 // by the counter's limit and last dimension's value
	identity  map[wirev1.ID]string
	reports   []*wirev1.UsageReport
	watermark int64
	sequence  uint64
	records   []*wirev1.Record
	wanted    []*wirev1.CounterID
	silent    bool
	frozen    bool // the watermark stays: headers renew a record without including more
	status    *wirev1.PodStatus
	statuses  int
	tombstone bool
}

type series struct {
	pod, made uint64
	id        wirev1.ID
}

func newInstallation(t *testing.T) *installation {
	t.Helper()
	kafka, err := embedded.StartKafka("")
	if err != nil {
		t.Fatal(err)
	}
	client, err := bus.Dial(t.Context(), bus.Config{Brokers: []string{kafka.Addr()}}, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	i := &installation{
		t: t, kafka: kafka, client: client, keys: testKeys(t),
		topics: bus.Topics{Partitions: partitions, Replication: 1}.WithDefaults(),
		last:   map[series]uint64{}, total: map[string]uint64{}, identity: map[wirev1.ID]string{}, watermark: -1,
	}
	if _, err := client.Ensure(t.Context(), i.topics, false); err != nil {
		t.Fatal(err)
	}
	id, err := client.TopicID(t.Context(), i.topics.Usage)
	if err != nil {
		t.Fatal(err)
	}
	i.logID = id[:]
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	i.writer = bus.NewWriter(client, bus.WriterConfig{Depth: map[string]int{i.topics.Policies: 16}})
	all.Go(func() { _ = i.writer.Run(ctx) })
	all.Go(func() { i.read(ctx, i.topics.Usage, i.partition(), i.usage) })
	all.Go(func() { i.read(ctx, i.topics.Status, 0, i.statusRecord) })
	all.Go(func() { i.own(ctx) })
	var once sync.Once
	i.stop = func() {
		once.Do(func() { cancel(); all.Wait(); _ = client.Close(); kafka.Close() })
	}
	t.Cleanup(i.stop)
	i.publish("installation", &wirev1.PolicyMessage{Body: &wirev1.PolicyMessage_Installation{Installation: &wirev1.Installation{
		Partitions: partitions, UsageTopicId: i.logID, KeyFingerprint: i.keys.Fingerprint(),
	}}})
	return i
}

func (i *installation) partition() int32 { return wirev1.Partition(target, partitions) }

func (i *installation) read(ctx context.Context, topic string, partition int32, handle func(bus.Message)) {
	_ = bus.NewReader(i.client, bus.ReaderConfig{
		Topic: topic, Partitions: map[int32]bus.From{partition: {}}, Handle: handle, MaxWait: 50 * time.Millisecond,
	}).Run(ctx)
}

// usage adds up a report as an owner does.
func (i *installation) usage(m bus.Message) {
	var u wirev1.UsageMessage
	if proto.Unmarshal(m.Value, &u) != nil {
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if !i.frozen {
		i.watermark = m.Offset
	}
	r := u.GetReport()
	i.reports = append(i.reports, r)
	for _, t := range r.GetTargets() {
		for _, e := range t.GetEntries() {
			i.entry(r.GetPodEpoch(), e)
		}
	}
}

func (i *installation) entry(pod uint64, e *wirev1.UsageEntry) {
	id := wirev1.ID{Hi: e.GetIdHi(), Lo: e.GetIdLo()}
	if len(e.GetIdentity()) > 0 {
		identity, err := wirev1.DecodeIdentity(e.GetIdentity())
		if err != nil || i.keys.ID(e.GetIdentity()) != id {
			i.t.Errorf("identity of %v: %v", id, err)
			return
		}
		name := identity.Limit
		for _, d := range identity.Dimensions {
			name += " " + d.Value
		}
		i.identity[id] = name
	}
	k := series{pod, e.GetMade(), id}
	from, known := i.last[k]
	if !known {
		from = e.GetBase()
	}
	if e.GetCumulative() > from {
		i.total[i.identity[id]] += e.GetCumulative() - from
	}
	i.last[k] = max(from, e.GetCumulative())
}

func (i *installation) statusRecord(m bus.Message) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.statuses++
	i.tombstone = m.Value == nil
	var s wirev1.PodStatus
	if proto.Unmarshal(m.Value, &s) == nil && m.Value != nil {
		i.status = &s
	}
}

// own sends a header each tick, with the records set meanwhile.
func (i *installation) own(ctx context.Context) {
	tick := time.NewTicker(25 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if value := i.batch(); value != nil {
			_ = i.writer.Send(i.topics.Decisions, i.partition(), nil, value, func(bus.Ack) {})
		}
	}
}

func (i *installation) batch() []byte {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.silent {
		return nil
	}
	i.sequence++
	value, _ := proto.Marshal(&wirev1.DecisionBatch{
		Header: &wirev1.Header{
			LogId: i.logID, KeyFingerprint: i.keys.Fingerprint(), Epoch: 1, Sequence: i.sequence,
			Watermark: i.watermark, OwnerTimeMs: time.Now().UnixMilli(), FlushMs: 50, TickMs: 25,
			Targets: []*wirev1.TargetHeader{{Target: target, LivePods: 1}}, Wanted: i.wanted, Instance: "test",
		},
		Records: i.records,
	})
	i.records, i.wanted = nil, nil
	return value
}

// publish sends a record of the policy topic and waits for its acknowledgement.
func (i *installation) publish(key string, m *wirev1.PolicyMessage) int64 {
	i.t.Helper()
	var value []byte
	if m != nil {
		var err error
		if value, err = proto.Marshal(m); err != nil {
			i.t.Fatal(err)
		}
	}
	acks := make(chan bus.Ack, 1)
	if err := i.writer.Send(i.topics.Policies, 0, []byte(key), value, func(a bus.Ack) { acks <- a }); err != nil {
		i.t.Fatal(err)
	}
	a := <-acks
	if a.Err != nil {
		i.t.Fatal(a.Err)
	}
	return a.Offset
}

const policyKey = "file/shop/orders"

// policy publishes limits as policy shop/orders on the target.
func (i *installation) policy(limits string) int64 {
	i.t.Helper()
	docs, err := policy.Parse("test", []byte(`apiVersion: weirproxy.dev/v1alpha1
kind: QuotaPolicy
metadata: {name: orders, namespace: shop}
spec:
  targetRefs: [{group: apps, kind: Deployment, name: orders}]
  client: [{source: Header, name: x-client, reveal: true}]
  limits: `+limits+"\n"))
	if err != nil {
		i.t.Fatal(err)
	}
	_, p, err := policy.Encode(policy.OriginFile, docs[0], i.keys, nil)
	if err != nil {
		i.t.Fatal(err)
	}
	return i.publish(policyKey, &wirev1.PolicyMessage{Body: &wirev1.PolicyMessage_Policy{Policy: p}})
}

// each is a limit of n a window for each client.
func each(n int, window string) string {
	return fmt.Sprintf("[{name: each, counters: [Client], rates: [{limit: %d, window: %s}]}]", n, window)
}

func (i *installation) totalOf(name string) uint64 {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.total[name]
}

// locked reads what the installation has seen.
func locked[T any](i *installation, f func() T) T {
	i.mu.Lock()
	defer i.mu.Unlock()
	return f()
}

// running is a sidecar and a connection to it.
type running struct {
	t      *testing.T
	config Config
	*Sidecar
	client authv3.AuthorizationClient
	admin  *admin.Client
	end    func() error
}

func configOf(t *testing.T, brokers, dir string) Config {
	t.Helper()
	sockets := t.TempDir()
	return Config{
		Listen:    "unix://" + filepath.Join(sockets, "check.sock"),
		Namespace: "shop", Pod: "orders-1", OwnerKind: "Deployment", OwnerName: "orders",
		IdentityKey: identityKey, StateDir: dir,
		Kafka: bus.Config{Brokers: []string{brokers}, BackoffMax: 100 * time.Millisecond},
		Admin: admin.Config{Address: "unix://" + filepath.Join(sockets, "admin.sock")},
	}
}

func start(t *testing.T, c Config) *running {
	t.Helper()
	s, err := New(c, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	conn, err := grpc.NewClient(c.Listen, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	a, err := admin.NewClient(c.Admin.Address)
	if err != nil {
		t.Fatal(err)
	}
	r := &running{t: t, config: c, Sidecar: s, client: authv3.NewAuthorizationClient(conn), admin: a}
	var once sync.Once
	var result error
	r.end = func() error {
		once.Do(func() { cancel(); result = <-ended; _ = conn.Close() })
		return result
	}
	t.Cleanup(func() { _ = r.end() })
	return r
}

// check asks for one request of a client.
func (r *running) check(client string) (*authv3.CheckResponse, error) {
	return r.client.Check(r.t.Context(), &authv3.CheckRequest{Attributes: &authv3.AttributeContext{
		Request: &authv3.AttributeContext_Request{Http: &authv3.AttributeContext_HttpRequest{
			Method: "GET", Path: "/orders/7", Host: "shop.example", Headers: map[string]string{"x-client": client},
		}},
	}}, grpc.WaitForReady(true))
}

// passes is how many of n requests of a client are let through.
func (r *running) passes(client string, n int) (passed int) {
	r.t.Helper()
	for range n {
		res, err := r.check(client)
		if err != nil {
			r.t.Fatal(err)
		}
		if res.GetDeniedResponse() == nil {
			passed++
		}
	}
	return passed
}

// eventually waits until f holds.
func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !f(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", patience, what)
		}
	}
}

// inForce waits until a version of the policy is.
func (r *running) inForce(version int64) {
	r.t.Helper()
	eventually(r.t, fmt.Sprintf("version %d in force", version), func() bool {
		v, err := r.agent.Policies(r.t.Context())
		if err != nil {
			r.t.Fatal(err)
		}
		for _, p := range v.Policies {
			if p.Key == policyKey && p.Version == version && p.InForce {
				return true
			}
		}
		return false
	})
}

// ready waits until the sidecar is, with no reason left that contains any of the words.
func (r *running) ready(without ...string) {
	r.t.Helper()
	eventually(r.t, "ready", func() bool {
		state := r.State()
		text := strings.Join(state.Texts(), "\n")
		for _, w := range without {
			if strings.Contains(text, w) {
				return false
			}
		}
		return state.Ready && state.Started
	})
}
