package agent

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"google.golang.org/protobuf/proto"

	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/internal/bus"
	"github.com/weirproxy/weir/internal/explain"
	"github.com/weirproxy/weir/internal/policy"
	"github.com/weirproxy/weir/internal/quota"
	"github.com/weirproxy/weir/sidecar/check"
	"github.com/weirproxy/weir/sidecar/ledger"
	"github.com/weirproxy/weir/sidecar/match"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	target    = "shop/Deployment/orders"
	policyKey = "file/shop/orders"
)

func testKeys(t testing.TB) wirev1.Keys {
	t.Helper()
	keys, err := wirev1.NewKeys(bytes.Repeat([]byte{7}, wirev1.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// desk is an agent whose control goroutine is the test's own: without Kafka, and without Run.
type desk struct {
	*Agent
	t        testing.TB
	reg      *prometheus.Registry
	version  int64
	sequence uint64
	appended time.Time
}

func newDesk(t testing.TB, change ...func(*Config)) *desk {
	t.Helper()
	c := Config{
		Name: "shop/orders-1", Pod: match.Pod{Namespace: "shop", OwnerKind: "Deployment", OwnerName: "orders"},
		Keys: testKeys(t), Topics: bus.Topics{}.WithDefaults(), ReadyAfter: time.Hour, Drain: time.Second,
	}
	for _, f := range change {
		f(&c)
	}
	reg := prometheus.NewRegistry()
	d := &desk{Agent: New(c, zap.NewNop(), reg), t: t, reg: reg, appended: time.UnixMilli(1_790_000_000_000)}
	d.Restore()
	return d
}

func (d *desk) installation(partitions uint32) {
	d.record("installation", &wirev1.PolicyMessage{Body: &wirev1.PolicyMessage_Installation{Installation: &wirev1.Installation{
		Partitions: partitions, KeyFingerprint: d.config.Keys.Fingerprint(),
	}}})
}

func (d *desk) record(key string, m *wirev1.PolicyMessage) int64 {
	d.t.Helper()
	d.version++
	var value []byte
	if m != nil {
		var err error
		if value, err = proto.Marshal(m); err != nil {
			d.t.Fatal(err)
		}
	}
	d.policyRecord(key, d.version, value)
	return d.version
}

func policyOf(t testing.TB, keys wirev1.Keys, limits string) *wirev1.PolicyMessage {
	t.Helper()
	docs, err := policy.Parse("test", []byte(`apiVersion: weirproxy.dev/v1alpha1
kind: QuotaPolicy
metadata: {name: orders, namespace: shop}
spec:
  targetRefs: [{group: apps, kind: Deployment, name: orders}]
  client: [{source: Header, name: x-client, reveal: true}]
  limits: `+limits+"\n"))
	if err != nil {
		t.Fatal(err)
	}
	_, p, err := policy.Encode(policy.OriginFile, docs[0], keys, nil)
	if err != nil {
		t.Fatal(err)
	}
	return &wirev1.PolicyMessage{Body: &wirev1.PolicyMessage_Policy{Policy: p}}
}

func (d *desk) policy(limits string) int64 {
	d.t.Helper()
	return d.record(policyKey, policyOf(d.t, d.config.Keys, limits))
}

const each100 = `[{name: each, counters: [Client], rates: [{limit: 100, window: 1h}]}]`

// begun is a desk with a policy in force and its partition's end reached.
func begun(t testing.TB, limits string, change ...func(*Config)) (*desk, *hearing) {
	t.Helper()
	d := newDesk(t, change...)
	d.installation(4)
	d.policy(limits)
	d.policiesRead()
	d.installIfChanged()
	h := d.hearings[d.partitionOf(target)]
	if h == nil {
		t.Fatal("nobody listens to the target's partition")
	}
	h.feed.SetCaughtUp()
	d.setLogID([]byte("log a"))
	return d, h
}

func request(client string) *match.Request {
	return &match.Request{Method: "GET", Path: "/", Headers: match.Headers{Joined: map[string]string{"x-client": client}}}
}

func (d *desk) passes(client string, n int) (passed int) {
	for range n {
		var a check.Answer
		d.Checker().Check(request(client), &a)
		if a.Failed() {
			d.t.Fatalf("outcome %v", a.Outcome)
		}
		if a.Allow() {
			passed++
		}
	}
	return passed
}

func (d *desk) id(client string) wirev1.ID {
	var res match.Result
	d.Checker().Snapshot().Matcher.Match(request(client), &res)
	return res.Hits[0].ID
}

// hear sends one batch of the owner.
func (d *desk) hear(h *hearing, change func(*wirev1.DecisionBatch)) {
	d.sequence++
	d.appended = d.appended.Add(time.Millisecond)
	b := &wirev1.DecisionBatch{Header: &wirev1.Header{
		LogId: []byte("log a"), KeyFingerprint: d.config.Keys.Fingerprint(), Epoch: 1, Sequence: d.sequence, Watermark: -1,
		OwnerTimeMs: d.appended.UnixMilli(), FlushMs: 50, TickMs: 25,
		Targets: []*wirev1.TargetHeader{{Target: target, LivePods: 2}},
	}}
	if change != nil {
		change(b)
	}
	value, err := proto.Marshal(b)
	if err != nil {
		d.t.Fatal(err)
	}
	d.batch(h, bus.Message{Value: value, Appended: d.appended}, d.now())
}

// blocked is a record of an exhausted counter.
func blocked(id wirev1.ID) *wirev1.Record {
	return &wirev1.Record{
		IdHi: id.Hi, IdLo: id.Lo, Amount: 100, Rate: 100. / 3600, Remaining: -3, Content: 103, ShareSum: 1, Epsilon: 1,
		BlockedForMs: 1_800_000,
	}
}

func TestRecordsApplyOnlyOnceTheEndIsReached(t *testing.T) {
	d, h := begun(t, each100)
	h2 := newHearing(h.partition, d.config.Keys.Fingerprint(), []byte("log a"))
	d.hearings[h.partition] = h2 // as if it had just begun to listen
	d.passes("a", 1)
	d.takeMade(d.now())
	d.hear(h2, func(b *wirev1.DecisionBatch) {
		b.Records = append(b.Records, blocked(d.id("a")), blocked(d.id("unseen")))
	})
	if d.passes("a", 1) != 1 || d.passes("unseen", 1) != 1 {
		t.Error("a record applies before the partition's end is reached")
	}
	d.takeMade(d.now())
	h2.feed.SetCaughtUp()
	d.hear(h2, nil)
	for _, s := range d.ledger.Live() {
		if _, _, ok := s.Counter.Record(); !ok {
			t.Errorf("counter %v has no record once the end is reached", countedBy(s.Identity()))
		}
	}
}

// Batches of the last seconds are read in a moment: in the pod's time they lie as far apart as they were
// appended, and those of the present owner are renewed by its next header.
func TestWhatWasReadLateLiesInThePastAndIsRenewed(t *testing.T) {
	d, h := begun(t, each100)
	id := d.id("a")
	d.hear(h, nil)
	h2 := newHearing(h.partition, d.config.Keys.Fingerprint(), []byte("log a"))
	d.hearings[h.partition] = h2
	d.targets[target].Fresh = &h2.fresh
	d.hear(h2, nil)
	d.hear(h2, func(b *wirev1.DecisionBatch) {
		r := blocked(id)
		r.BlockedForMs, r.Remaining, r.Content = 0, 50, 50
		r.Demand = 1000 // hot, and so remembered
		b.Records = append(b.Records, r)
	})
	d.appended = d.appended.Add(5 * time.Second)
	h2.feed.SetCaughtUp()
	d.hear(h2, nil)

	known, ok := d.known.Get(id)
	newest, _ := h2.fresh.Newest()
	if lag := time.Duration(newest.Received - known.Header.Received); !ok || lag < 4900*time.Millisecond || lag > 5100*time.Millisecond {
		t.Fatalf("known %v, %v before the newest header; want 5 s", ok, lag)
	}
	var c quota.Counter
	c.Init(new(quota.Cell), &quota.Rule{Algorithm: quota.SlidingWindow, Limit: 100, Window: time.Hour}, &h2.fresh, new(quota.Fleet), 1, d.now())
	c.Apply(known.Header, known.Record, d.now(), &d.rnd)
	if left := c.State(d.now()).Left; left > 48.5 || left < 47.5 { // renewed: 2 % of the amount less, and no more
		t.Errorf("%v left of 50", left)
	}
}

func TestANewSlotBeginsWithTheKnownRecord(t *testing.T) {
	d, h := begun(t, each100)
	id := d.id("greedy")
	d.hear(h, func(b *wirev1.DecisionBatch) { b.Records = append(b.Records, blocked(id)) })
	if got := d.passes("greedy", 3); got != 0 {
		t.Errorf("%d requests of a blocked counter pass", got)
	}
	if got := d.passes("modest", 3); got != 3 {
		t.Errorf("%d of another's pass", got)
	}
}

// A slot whose record came between its making and the control goroutine's look at it gets it all the same.
func TestARecordThatCrossesTheMakingOfASlotIsNotLost(t *testing.T) {
	d, h := begun(t, each100)
	d.hear(h, nil)
	d.passes("a", 1) // made, not yet taken
	d.hear(h, func(b *wirev1.DecisionBatch) { b.Records = append(b.Records, blocked(d.id("a"))) })
	d.takeMade(d.now())
	if got := d.passes("a", 1); got != 0 {
		t.Error("the record is lost")
	}
}

// A topic made anew: what awaits the old offsets is dropped, counts go on.
func TestANewLogDropsRecordsAndKeepsCounts(t *testing.T) {
	d, h := begun(t, each100)
	d.passes("a", 5)
	d.takeMade(d.now())
	s := d.ledger.Live()[0]
	d.hear(h, func(b *wirev1.DecisionBatch) { b.Records = append(b.Records, blocked(d.id("a"))) })
	d.setLogID([]byte("log b"))
	if _, _, ok := s.Counter.Record(); ok || h.live {
		t.Error("the old log's decision is still held")
	}
	if n, _ := d.known.Len(); n != 0 {
		t.Errorf("%d records of the old log are known", n)
	}
	d.hear(h, func(b *wirev1.DecisionBatch) { b.Header.Epoch = 9; b.Header.Sequence = 900 })
	if h.live {
		t.Error("the old log's owner is heard")
	}
	d.hear(h, func(b *wirev1.DecisionBatch) {
		b.Header.LogId = []byte("log b")
		b.Header.Epoch = 0
		b.Header.Sequence = 1
	})
	if !h.live || s.Cell.Admitted() != 5 {
		t.Errorf("live %v, %d admitted", h.live, s.Cell.Admitted())
	}
}

func TestIdleCountersGoAndDirtyOnesStay(t *testing.T) {
	d, _ := begun(t, `[{name: each, counters: [Client], rates: [{limit: 100, window: 1s}]}]`)
	d.passes("dirty", 1)
	d.passes("clean", 1)
	clean := d.id("clean")
	d.takeMade(d.now())
	s := d.ledger.Find(clean)
	d.ledger.TakeDirty(func(*ledger.Slot) {})
	if _, n := s.Counter.Flush(d.now(), 50*time.Millisecond, true); n != 1 {
		t.Fatal("nothing to report")
	}
	s.Counter.Acknowledge(1, 0, d.now())

	later := d.now() + quota.Time(2*idleAfter)
	d.evict(d.now())
	if len(d.ledger.Live()) != 2 {
		t.Error("a young counter is evicted")
	}
	d.evict(later)
	if len(d.ledger.Live()) != 1 || d.ledger.Find(clean) != nil {
		t.Errorf("%d live; the clean one is still there: %v", len(d.ledger.Live()), d.ledger.Find(clean) != nil)
	}
	d.builder.Mark(d.ledger.Live()[0])
	for range 3 {
		d.flush(later, false)
	}
	if slots, _ := d.ledger.Size(); slots != 1 {
		t.Errorf("%d slots in use", slots)
	}
	if got := d.passes("clean", 1); got != 1 {
		t.Error("the evicted client cannot come back")
	}
}

func TestAnotherNumberOfPartitionsMovesTargets(t *testing.T) {
	d, h := begun(t, each100)
	d.passes("a", 3)
	d.takeMade(d.now())
	partitions := uint32(5)
	for wirev1.Partition(target, int32(partitions)) == h.partition {
		partitions++
	}
	d.installation(partitions)
	d.installIfChanged()
	want := wirev1.Partition(target, int32(partitions))
	if d.targets[target].Partition != want || d.hearings[h.partition] != nil || d.hearings[want] == nil {
		t.Errorf("target in partition %d, want %d; listening to %v", d.targets[target].Partition, want, d.hearings)
	}
	d.passes("a", 1)
	d.takeMade(d.now())
	for _, s := range d.ledger.Live() {
		if s.Partition != want {
			t.Errorf("a counter of partition %d is still live", s.Partition)
		}
	}
}

func TestPoliciesThatAttachToNobodyLeaveNoCounterBehind(t *testing.T) {
	d, h := begun(t, each100)
	d.passes("a", 3)
	d.takeMade(d.now())
	d.record(policyKey, nil)
	d.installIfChanged()
	if len(d.ledger.Live()) != 0 || len(d.hearings) != 0 || len(d.targets) != 0 {
		t.Errorf("left: %d counters, %d partitions, %d targets", len(d.ledger.Live()), len(d.hearings), len(d.targets))
	}
	d.hear(h, func(b *wirev1.DecisionBatch) { b.Records = append(b.Records, blocked(wirev1.ID{Lo: 1})) }) // was on its way
	if n, _ := d.known.Len(); n != 0 {
		t.Error("a partition that nobody needs is still heard")
	}
}

func TestReadinessSaysWhatItWaitsForAndComesInTheEnd(t *testing.T) {
	d := newDesk(t, func(c *Config) { c.ReadyAfter = 10 * time.Second })
	has := func(codes ...string) {
		t.Helper()
		state := d.State()
		if got := state.codes(); !slices.Equal(got, codes) {
			t.Errorf("reasons %v, want %v\n%s", got, codes, strings.Join(state.Texts(), "\n"))
		}
	}
	now := d.now()
	d.evaluate(now)
	has(ReasonPolicies)
	d.policiesRead()
	d.installIfChanged()
	d.evaluate(now)
	has(ReasonInstallation, ReasonNoPolicy)
	if d.State().Ready {
		t.Error("ready without an installation")
	}
	d.installation(4)
	d.policy(each100)
	d.installIfChanged()
	d.evaluate(now)
	has(ReasonDecisions, ReasonLivePods)
	d.evaluate(now + quota.Time(11*time.Second))
	if s := d.State(); !s.Ready || !s.Degraded {
		t.Errorf("after the grace: %+v", s)
	}
	h := d.hearings[d.partitionOf(target)]
	h.feed.SetCaughtUp()
	d.hear(h, nil)
	d.evaluate(d.now())
	has()
	d.evaluate(d.now() + quota.Time(time.Minute))
	has(ReasonDecisions)
	if !d.State().Ready {
		t.Error("an outage takes a ready sidecar out of service")
	}
}

func TestStrictBelowFourUnitsAPodIsSaid(t *testing.T) {
	d, h := begun(t, `[{name: each, counters: [Client], accuracy: Strict, rates: [{limit: 7, window: 1s}]}]`)
	d.hear(h, nil) // two pods
	d.evaluate(d.now())
	if got := d.State().Texts(); len(got) != 1 || !strings.Contains(got[0], "StrictUnavailable") || !strings.Contains(got[0], "shop/orders/each") {
		t.Errorf("reasons = %v", got)
	}
}

// Explaining charges nothing, makes nothing, and agrees with the check that follows.
func TestExplainChargesNothingAndAgrees(t *testing.T) {
	d, h := begun(t, `[{name: each, counters: [Client], rates: [{limit: 3, window: 1h}]}]`)
	d.hear(h, func(b *wirev1.DecisionBatch) { b.Header.Targets[0].LivePods = 1 })
	ask := func() explain.Response {
		req, err := requestOf(explain.Request{Headers: map[string][]string{"X-Client": {"a"}}})
		if err != nil {
			t.Fatal(err)
		}
		return d.explain(req)
	}
	for n := range 5 {
		for range 10 {
			e := ask()
			if want := n < 3; e.Allowed != want {
				t.Fatalf("after %d requests explained as allowed %v: %+v", n, e.Allowed, e)
			}
		}
		if passed := d.passes("a", 1) == 1; passed != (n < 3) {
			t.Errorf("request %d passed: %v", n, passed)
		}
	}
	e := ask()
	c := e.Counters[0]
	if e.Outcome != "refused" || e.RefusedBy != "shop/orders/each" || e.Status != 429 || c.Amount != 3 || c.Mode != "Enforce" ||
		c.OK || c.RetryAfterMS <= 0 || !strings.Contains(fmt.Sprint(c.CountedBy), "a") || c.DecisionAgeMS == nil {
		t.Errorf("explained: %+v", e)
	}
}

func TestTheFileOfLastGoodPoliciesComesBackWhole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "last")
	d, h := begun(t, each100, func(c *Config) { c.StateFile = path })
	d.hear(h, nil)
	d.record("file/shop/bad", &wirev1.PolicyMessage{Body: &wirev1.PolicyMessage_Policy{Policy: &wirev1.Policy{SchemaVersion: 99}}})
	d.save()
	d.saver.save()

	again := newDesk(t, func(c *Config) { c.StateFile = path })
	if got := again.passes("a", 200); got != 50+2 && got != 50 { // half of 100: there are two pods
		t.Errorf("%d pass under the restored policy and number of pods", got)
	}
	v := again.policiesView()
	if len(v.Policies) != 1 || v.Policies[0].Version != 2 || v.Targets[0].LivePods != 2 || v.Partitions != 4 {
		t.Errorf("restored: %+v", v)
	}
	again.policiesRead() // and the topic holds nothing: it was deleted meanwhile
	again.installIfChanged()
	if len(again.policiesView().Policies) != 0 {
		t.Error("a policy deleted meanwhile is still in force")
	}

	other := newDesk(t, func(c *Config) {
		c.StateFile = path
		keys, err := wirev1.NewKeys(bytes.Repeat([]byte{8}, wirev1.KeySize))
		if err != nil {
			t.Fatal(err)
		}
		c.Keys = keys
	})
	if len(other.policiesView().Policies) != 0 {
		t.Error("a file of another identity key is taken up")
	}
}

func TestAFileThatCannotBeWrittenIsSaid(t *testing.T) {
	d, _ := begun(t, each100, func(c *Config) { c.StateFile = filepath.Join(t.TempDir(), "missing", "last") })
	d.save()
	d.saver.save()
	d.evaluate(d.now())
	if !slices.Contains(d.State().codes(), ReasonStateFile) {
		t.Errorf("reasons = %v", d.State().Texts())
	}
}

func TestTopCountersAreTheMostOffered(t *testing.T) {
	d, _ := begun(t, `[{name: each, counters: [Client], rates: [{limit: 1000, window: 1h}]}]`)
	for n := range 30 {
		d.passes(fmt.Sprint("c", n), (n*7)%30+1)
	}
	v := d.countersView("shop/orders/each", 3)
	if got := v.Counters; v.Total != 30 || len(got) != 3 || got[0].Offered != 30 || got[1].Offered != 29 || got[2].Offered != 28 {
		t.Errorf("%d in all; top %+v", v.Total, got)
	}
	if v := d.countersView("shop/orders/other", 3); v.Total != 0 || len(v.Counters) != 0 {
		t.Errorf("another limit has %d", v.Total)
	}
}
