package aggregator

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest"
	"google.golang.org/protobuf/proto"

	"github.com/weirproxy/weir/aggregator/store"
	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/internal/bus"
	"github.com/weirproxy/weir/internal/embedded"
	"github.com/weirproxy/weir/internal/policy"
	"github.com/weirproxy/weir/internal/policytopic"
)

func TestMain(m *testing.M) {
	// A library's own, one a process.
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("github.com/rcrowley/go-metrics.(*meterArbiter).tick"))
}

const (
	target     = "shop/Service/orders"
	partitions = 4
)

var key = bytes.Repeat([]byte{7}, wirev1.KeySize)

// site is Kafka, Redis and a directory of policies, with what a pod needs to report.
type site struct {
	t      *testing.T
	kafka  *embedded.Kafka
	redis  *embedded.Redis
	store  *store.Redis
	broker string
	group  string
	addr   string // of Redis
	client *bus.Client
	writer *bus.Writer
	keys   wirev1.Keys
	dir    string
	topics bus.Topics

	mu      sync.Mutex
	batches []*wirev1.DecisionBatch
	heard   []time.Time
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{t: t, dir: t.TempDir(), topics: bus.Topics{Partitions: partitions}.WithDefaults(), group: "weir-aggregator"}
	var err error
	if s.broker = os.Getenv("WEIR_TEST_KAFKA"); s.broker == "" {
		s.embedded(t)
	} else {
		s.real(t)
	}
	s.redisNow(t)
	if s.keys, err = wirev1.NewKeys(key); err != nil {
		t.Fatal(err)
	}
	if s.client, err = bus.Dial(t.Context(), bus.Config{Brokers: []string{s.broker}}, zap.NewNop()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.client.Close() })
	if _, err := s.client.Ensure(t.Context(), s.topics, false); err != nil {
		t.Fatal(err)
	}
	s.writer = bus.NewWriter(s.client, bus.WriterConfig{Depth: map[string]int{s.topics.Usage: 2}})
	t.Cleanup(s.writer.Close)
	s.policy("100000")
	s.listen()
	return s
}

// embedded starts Kafka and Redis in this process.
func (s *site) embedded(t *testing.T) {
	var err error
	if s.kafka, err = embedded.StartKafka(""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.kafka.Close)
	if s.redis, err = embedded.StartRedis(""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.redis.Close)
	s.broker, s.addr = s.kafka.Addr(), s.redis.Addr()
}

// real uses the servers that WEIR_TEST_KAFKA and WEIR_TEST_REDIS name, with topics of this test's own.
func (s *site) real(t *testing.T) {
	if s.addr = os.Getenv("WEIR_TEST_REDIS"); s.addr == "" {
		t.Skip("WEIR_TEST_KAFKA is set, WEIR_TEST_REDIS is not")
	}
	suffix := fmt.Sprintf(".%d", time.Now().UnixNano())
	for _, name := range []*string{&s.topics.Usage, &s.topics.Decisions, &s.topics.Policies, &s.topics.Status, &s.group} {
		*name += suffix
	}
}

// inProcess skips a test that needs to pull the embedded servers' strings.
func (s *site) inProcess() {
	if s.kafka == nil {
		s.t.Skip("only with the embedded servers")
	}
}

func (s *site) redisNow(t *testing.T) {
	var err error
	if s.store, err = store.New(store.Config{Addresses: []string{s.addr}, Timeout: 5 * time.Second}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.store.Close)
}

// policy writes the policy file with one limit a second by client.
func (s *site) policy(limit string) {
	s.t.Helper()
	doc := fmt.Sprintf(`apiVersion: weirproxy.dev/v1alpha1
kind: QuotaPolicy
metadata: {name: orders, namespace: shop}
spec:
  targetRefs: [{group: "", kind: Service, name: orders}]
  client: [{source: Principal}]
  limits:
  - name: each-client
    counters: [Client]
    rates: [{limit: %s, window: 1s}]
`, limit)
	if err := os.WriteFile(filepath.Join(s.dir, "orders.yaml"), []byte(doc), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// listen gathers the decisions of the target's partition.
func (s *site) listen() {
	p := wirev1.Partition(target, partitions)
	ctx, stop := context.WithCancel(s.t.Context())
	r := bus.NewReader(s.client, bus.ReaderConfig{
		Topic: s.topics.Decisions, Partitions: map[int32]bus.From{p: {}}, MaxWait: 50 * time.Millisecond,
		Handle: func(m bus.Message) {
			b := new(wirev1.DecisionBatch)
			if err := proto.Unmarshal(m.Value, b); err != nil {
				s.t.Error(err)
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			s.batches, s.heard = append(s.batches, b), append(s.heard, time.Now())
		},
	})
	done := make(chan struct{})
	go func() { defer close(done); _ = r.Run(ctx) }()
	s.t.Cleanup(func() { stop(); <-done })
}

// wait polls until f holds.
func (s *site) wait(what string, f func() bool) {
	s.t.Helper()
	for range 1500 {
		if f() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	s.t.Fatalf("waited in vain until %s", what)
}

// running is an aggregator under test.
type running struct {
	*Aggregator
	stop func()
}

func (s *site) start(instance string, change func(*Config)) *running {
	s.t.Helper()
	cfg := Config{
		Instance: instance, Group: s.group, IdentityKey: key, Policies: s.dir, Topics: s.topics,
		Kafka: bus.Config{Brokers: []string{s.broker}}, Redis: store.Config{Addresses: []string{s.addr}},
	}
	if change != nil {
		change(&cfg)
	}
	a, err := New(cfg, zaptest.NewLogger(s.t, zaptest.Level(zap.InfoLevel)).Named(instance))
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	var once sync.Once
	r := &running{a, func() {
		once.Do(func() {
			cancel()
			if err := <-done; err != nil {
				s.t.Errorf("%s ends with %v", instance, err)
			}
		})
	}}
	s.t.Cleanup(r.stop)
	return r
}

func (r *running) live() int {
	n := 0
	if c := r.core.get(); c != nil {
		for _, h := range c.owner.Holdings() {
			if h.State == "live" {
				n++
			}
		}
	}
	return n
}

// pod reports cumulative counts of some clients, one report after the other.
type pod struct {
	s             *site
	name          string
	seq           uint64
	counts, acked map[string]uint64
}

func (s *site) pod(name string) *pod {
	return &pod{s: s, name: name, counts: map[string]uint64{}, acked: map[string]uint64{}}
}

func (s *site) identity(client string) []byte {
	id := wirev1.Identity{Target: target, Policy: "shop/orders", Limit: "each-client", Algorithm: wirev1.SlidingWindow,
		WindowMillis: 1000, Dimensions: []wirev1.Dimension{{Kind: wirev1.DimClientPrincipal, Value: client + s.group}}}
	return id.Append(nil)
}

// report sends what changed, and waits for the acknowledgement.
func (p *pod) report() {
	tu := &wirev1.TargetUsage{Target: target}
	for c, n := range p.counts {
		if n == p.acked[c] {
			continue
		}
		text := p.s.identity(c)
		id := p.s.keys.ID(text)
		e := &wirev1.UsageEntry{IdHi: id.Hi, IdLo: id.Lo, Made: 1, Cumulative: n, Base: p.acked[c], Offered: n, Demand: 20, SpanMs: 20}
		if p.acked[c] == 0 {
			e.Identity = text
		}
		tu.Entries = append(tu.Entries, e)
	}
	if len(tu.Entries) == 0 {
		return
	}
	p.seq++
	value, err := proto.Marshal(&wirev1.UsageMessage{Body: &wirev1.UsageMessage_Report{Report: &wirev1.UsageReport{
		KeyFingerprint: p.s.keys.Fingerprint(), Pod: p.name, PodEpoch: 99, Sequence: p.seq, Targets: []*wirev1.TargetUsage{tu},
	}}})
	if err != nil {
		p.s.t.Fatal(err)
	}
	acked := make(chan bus.Ack, 1)
	if err := p.s.writer.Send(p.s.topics.Usage, wirev1.Partition(target, partitions), nil, value, func(a bus.Ack) { acked <- a }); err != nil {
		p.s.t.Fatal(err)
	}
	if a := <-acked; a.Err == nil {
		for c, n := range p.counts {
			p.acked[c] = n
		}
	}
}

// load has every client of the pod admit some for a while.
func (p *pod) load(d time.Duration, clients ...string) {
	for end := time.Now().Add(d); time.Now().Before(end); {
		for _, c := range clients {
			p.counts[c] += 3
		}
		p.report()
		time.Sleep(10 * time.Millisecond)
	}
}

// stored is a counter's total in Redis, of this site's log.
func (s *site) stored(client string) uint64 {
	got, err := s.store.LoadCounters(s.t.Context(), wirev1.Partition(target, partitions), []wirev1.ID{s.keys.ID(s.identity(client))})
	if err != nil {
		return 0
	}
	for _, f := range got[0].Fields {
		if f.Index == 0 {
			return f.Value
		}
	}
	return 0
}

func (s *site) tallies(pods ...*pod) {
	s.t.Helper()
	want := map[string]uint64{}
	for _, p := range pods {
		for c, n := range p.counts {
			want[c] += n
		}
	}
	s.wait(fmt.Sprintf("Redis holds the pods' tally %v", want), func() bool {
		for c, n := range want {
			if s.stored(c) != n {
				return false
			}
		}
		return true
	})
}

func (s *site) last() *wirev1.DecisionBatch {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.batches) == 0 {
		return nil
	}
	return s.batches[len(s.batches)-1]
}

// A policy file, usage of two pods: totals reach Redis, records reach the pods, a raised limit takes effect.
func TestUsageIsTotalledAndDecided(t *testing.T) {
	s := newSite(t)
	s.policy("10")
	a := s.start("a-0", nil)
	s.wait("it is live", func() bool { return a.live() == partitions })
	x, y := s.pod("shop/x"), s.pod("shop/y")
	x.load(300*time.Millisecond, "acme", "bar")
	y.load(100*time.Millisecond, "acme")
	s.tallies(x, y)
	amount := func(m float64) func() bool {
		return func() bool {
			x.counts["acme"]++
			x.report()
			s.mu.Lock()
			defer s.mu.Unlock()
			id := s.keys.ID(s.identity("acme"))
			for _, b := range s.batches {
				for _, r := range b.Records {
					if r.IdHi == id.Hi && r.IdLo == id.Lo && r.Amount == m {
						return true
					}
				}
			}
			return false
		}
	}
	s.wait("a record of acme is sent", amount(10))
	s.policy("77")
	s.wait("the raised limit is in a record", amount(77))
	if ready, reasons := a.Ready(); !ready || len(reasons) > 0 {
		t.Errorf("ready %v, %v", ready, reasons)
	}
}

// Two instances share the partitions; one is stopped, then started again: nothing is counted twice or lost.
func TestPartitionsPassOn(t *testing.T) {
	s := newSite(t)
	a := s.start("a-0", nil)
	s.wait("a is live", func() bool { return a.live() == partitions })
	b := s.start("a-1", nil)
	s.wait("both share", func() bool { return a.live() > 0 && b.live() > 0 && a.live()+b.live() == partitions })
	x := s.pod("shop/x")
	done := make(chan struct{})
	go func() { defer close(done); x.load(2*time.Second, "acme", "bar", "baz") }()
	time.Sleep(300 * time.Millisecond)
	a.stop()
	s.wait("b has all", func() bool { return b.live() == partitions })
	c := s.start("a-2", nil)
	s.wait("c has some", func() bool { return c.live() > 0 })
	b.stop()
	s.wait("c has all", func() bool { return c.live() == partitions })
	<-done
	s.tallies(x)
	s.ordered()
}

// ordered: epochs, sequences and watermarks never go back.
func (s *site) ordered() {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	var h *wirev1.Header
	for _, b := range s.batches {
		n := b.Header
		if h != nil && (n.Epoch < h.Epoch || n.Epoch == h.Epoch && n.Sequence <= h.Sequence || n.Watermark < h.Watermark || n.OwnerTimeMs < h.OwnerTimeMs) {
			s.t.Errorf("header %v after %v", n, h)
		}
		h = n
	}
}

// Redis is stopped under load and comes back empty: headers go on, and the totals are whole again.
func TestRedisEmptiedUnderLoad(t *testing.T) {
	s := newSite(t)
	s.inProcess()
	a := s.start("a-0", nil)
	s.wait("it is live", func() bool { return a.live() == partitions })
	x := s.pod("shop/x")
	x.load(200*time.Millisecond, "acme", "bar")
	s.tallies(x)
	addr := s.addr
	s.redis.Close()
	before := s.last().GetHeader().GetSequence()
	x.load(500*time.Millisecond, "acme", "baz")
	if after := s.last().GetHeader().GetSequence(); after < before+4 {
		t.Errorf("%d headers while Redis was away, want them to go on", after-before)
	}
	again, err := embedded.StartRedis(addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(again.Close)
	s.redis = again
	x.load(200*time.Millisecond, "bar")
	s.tallies(x)
}

// The usage topic is deleted and made anew under load: the owner claims it under its new id, totals stay,
// and what pods report from then on counts once.
func TestUsageTopicMadeAnew(t *testing.T) {
	s := newSite(t)
	s.inProcess()
	a := s.start("a-0", nil)
	s.wait("it is live", func() bool { return a.live() == partitions })
	x := s.pod("shop/x")
	x.load(200*time.Millisecond, "acme", "bar")
	s.tallies(x)
	logID := s.last().GetHeader().GetLogId()
	if err := s.kafka.Cluster().DeleteTopic(s.topics.Usage); err != nil {
		t.Fatal(err)
	}
	if _, err := s.client.Ensure(t.Context(), s.topics, false); err != nil {
		t.Fatal(err)
	}
	s.wait("headers bear the new log id", func() bool { return !bytes.Equal(s.last().GetHeader().GetLogId(), logID) })
	x.load(200*time.Millisecond, "acme", "baz")
	s.tallies(x)
	s.wait("the installation names the new topic", func() bool {
		id, err := s.client.TopicID(t.Context(), s.topics.Usage)
		c := a.core.get()
		return err == nil && c != nil && bytes.Equal(c.policies.Installation().GetUsageTopicId(), id[:])
	})
}

// Started before Redis, and before the topics are there: it says what it waits for, and takes up work.
func TestWrongOrder(t *testing.T) {
	s := newSite(t)
	s.inProcess()
	addr := s.addr
	s.redis.Close()
	for _, topic := range []string{s.topics.Policies, s.topics.Usage} {
		if err := s.kafka.Cluster().DeleteTopic(topic); err != nil {
			t.Fatal(err)
		}
	}
	a := s.start("a-0", nil)
	says := func(word string) func() bool {
		return func() bool {
			ready, reasons := a.Ready()
			return !ready && strings.Contains(strings.Join(reasons, "\n"), word)
		}
	}
	s.wait("it says that it waits for the policy topic", says(s.topics.Policies))
	if _, err := s.client.Ensure(t.Context(), s.topics, false); err != nil {
		t.Fatal(err)
	}
	s.wait("it says that it waits for the store", func() bool {
		_, reasons := a.Ready()
		return strings.Contains(strings.Join(reasons, "\n"), "waiting for the store")
	})
	again, err := embedded.StartRedis(addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(again.Close)
	s.redis = again
	s.wait("it is live", func() bool { return a.live() == partitions })
	x := s.pod("shop/x")
	x.load(100*time.Millisecond, "acme")
	s.tallies(x)
}

// Another identity key, or another number of partitions, is refused with what to do.
func TestForeignInstallationIsRefused(t *testing.T) {
	s := newSite(t)
	a := s.start("a-0", nil)
	s.wait("it is live", func() bool { return a.live() == partitions })
	b := s.start("b-0", func(c *Config) { c.IdentityKey = bytes.Repeat([]byte{8}, wirev1.KeySize) })
	s.wait("it is refused", func() bool {
		ready, reasons := b.Ready()
		return !ready && strings.Contains(strings.Join(reasons, "\n"), "give it the identityKeyFile that every other program has")
	})
	if n := b.live(); n != 0 {
		t.Errorf("it holds %d partitions", n)
	}
}

// A bad edit keeps the last good version and says so; a deleted file deletes its policy; policies of
// other origins are not touched.
func TestPolicyFiles(t *testing.T) {
	s := newSite(t)
	a := s.start("a-0", nil)
	current := func() (names []string, problems int) {
		if c := a.core.get(); c != nil {
			for _, p := range c.policies.Current().Policies() {
				names = append(names, p.Key.String())
			}
			problems = len(c.policies.Problems())
		}
		return names, problems
	}
	inForce := func(want ...string) func() bool {
		return func() bool {
			names, _ := current()
			return slices.Equal(names, want)
		}
	}
	s.wait("it is published", inForce("file/shop/orders"))
	cli := strings.Replace(string(s.read("orders.yaml")), "name: orders, namespace", "name: other, namespace", 1)
	docs, err := policy.Parse("other.yaml", []byte(cli))
	if err != nil {
		t.Fatal(err)
	}
	r, err := policytopic.NewRecord(policytopic.Source{Origin: policy.OriginCLI, Document: docs[0]}, s.keys)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := policytopic.Publish(t.Context(), s.writer, s.topics.Policies, r); err != nil {
		t.Fatal(err)
	}
	s.wait("both are in force", inForce("file/shop/orders", "cli/shop/other"))
	s.policy("-5")
	time.Sleep(1500 * time.Millisecond)
	if !inForce("file/shop/orders", "cli/shop/other")() {
		t.Error("a bad edit changed what is in force")
	}
	s.wait("readiness says which file is bad, and it is ready all the same", func() bool {
		ready, reasons := a.Ready()
		return ready && strings.Contains(strings.Join(reasons, "\n"), "orders.yaml:10:14: spec.limits[0].rates[0].limit")
	})
	if err := os.Remove(filepath.Join(s.dir, "orders.yaml")); err != nil {
		t.Fatal(err)
	}
	s.wait("it is deleted", inForce("cli/shop/other"))
}

func (s *site) read(name string) []byte {
	b, err := os.ReadFile(filepath.Join(s.dir, name))
	if err != nil {
		s.t.Fatal(err)
	}
	return b
}

// The gap between two owners' headers, as pods see it, when one is asked to end under load. It is printed;
// WEIR_TEST_KAFKA and WEIR_TEST_REDIS measure it on real servers.
func TestHandoverGap(t *testing.T) {
	s := newSite(t)
	a := s.start("a-0", nil)
	s.wait("a is live", func() bool { return a.live() == partitions })
	x := s.pod("shop/x")
	done := make(chan struct{})
	go func() { defer close(done); x.load(3*time.Second, "acme", "bar", "baz") }()
	b := s.start("a-1", nil)
	s.wait("both share", func() bool { return a.live() > 0 && b.live() > 0 && a.live()+b.live() == partitions })
	time.Sleep(300 * time.Millisecond)
	if a.core.get().owner.Holds(wirev1.Partition(target, partitions)) {
		a.stop()
	} else {
		b.stop()
	}
	<-done
	s.tallies(x)
	s.ordered()
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := 1; i < len(s.batches); i++ {
		if s.batches[i].Header.Epoch != s.batches[i-1].Header.Epoch {
			t.Logf("owner %s to %s: headers %v apart", s.batches[i-1].Header.Instance, s.batches[i].Header.Instance, s.heard[i].Sub(s.heard[i-1]))
		}
	}
}

// A newer claim in the log fences the owner that reads it: it sends no more headers and says why.
func TestNewerClaimStopsTheOwner(t *testing.T) {
	s := newSite(t)
	a := s.start("a-0", nil)
	s.wait("it is live", func() bool { return a.live() == partitions })
	s.strangersClaim()
	s.wait("it gives the partition up", func() bool {
		_, reasons := a.Ready()
		return a.live() == partitions-1 && strings.Contains(strings.Join(reasons, " "), "another owner has claimed it")
	})
}

// strangersClaim appends a claim of another owner to the target's partition.
func (s *site) strangersClaim() {
	s.t.Helper()
	id, err := s.client.TopicID(s.t.Context(), s.topics.Usage)
	if err != nil {
		s.t.Fatal(err)
	}
	value, err := proto.Marshal(&wirev1.UsageMessage{Body: &wirev1.UsageMessage_Claim{Claim: &wirev1.Claim{
		KeyFingerprint: s.keys.Fingerprint(), Instance: "stranger", Nonce: 1, LogId: id[:]}}})
	if err != nil {
		s.t.Fatal(err)
	}
	p := wirev1.Partition(target, partitions)
	if err := s.writer.Send(s.topics.Usage, p, nil, value, func(bus.Ack) {}); err != nil {
		s.t.Fatal(err)
	}
}
