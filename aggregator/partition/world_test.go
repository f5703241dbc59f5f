package partition

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/weirproxy/weir/aggregator/store"
	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/internal/policy"
	"github.com/weirproxy/weir/internal/quota"
)

const (
	testTarget = "shop/Service/orders"
	testPolicy = "shop/orders"
	start      = quota.Millis(1_700_000_000_000)
)

type fataler interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}

func testKeys(t fataler) wirev1.Keys {
	k, err := wirev1.NewKeys(bytes.Repeat([]byte{7}, wirev1.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// rateOf makes a policy with one limit by client.
func policyOf(version int64, rules ...*quota.Rule) *policy.Policy {
	p := &policy.Policy{Key: policy.Key{Origin: "file", Namespace: "shop", Name: "orders"}, Name: testPolicy, Version: version,
		Targets: []policy.Target{{Name: testTarget}}}
	l := &policy.Limit{Policy: p, Name: "each-client", Dimensions: []policy.Dimension{{Kind: policy.ByClient}},
		Cost: policy.Cost{Default: 1, Max: 1}}
	for i, r := range rules {
		r.PolicyVersion = version
		id := wirev1.Identity{Policy: testPolicy, Limit: l.Name, Algorithm: wirev1.Algorithm(r.Algorithm), WindowMillis: uint64(r.Window.Milliseconds())}
		l.Rates = append(l.Rates, &policy.Rate{Limit: l, Index: i, Rule: r, Identity: id})
	}
	p.Limits = []*policy.Limit{l}
	return p
}

func sliding(limit float64, window time.Duration) *quota.Rule {
	return &quota.Rule{Algorithm: quota.SlidingWindow, Limit: limit, Window: window}
}

func identityOf(client string, window time.Duration) []byte {
	id := wirev1.Identity{Target: testTarget, Policy: testPolicy, Limit: "each-client", Algorithm: wirev1.SlidingWindow,
		WindowMillis: uint64(window.Milliseconds()),
		Dimensions:   []wirev1.Dimension{{Kind: wirev1.DimClientPrincipal, Value: client}}}
	return id.Append(nil)
}

// logged is one record of the usage partition.
type logged struct {
	appended quota.Millis
	value    []byte
}

// world is a usage log, a store, and one owner at a time, in virtual time.
type world struct {
	t     fataler
	keys  wirev1.Keys
	log   []logged
	logID store.LogID
	store *store.Memory
	set   *policy.Set
	now   quota.Time
	// skew is how the broker's clock differs from monotonic time.
	skew quota.Millis

	own        *Partition
	cfg        Config
	next       int // offset that the owner reads next
	flushBatch int
	// batches that the owner sent.
	batches []*wirev1.DecisionBatch
}

func newWorld(t fataler) *world {
	return &world{t: t, keys: testKeys(t), logID: store.LogID{1}, store: store.NewMemory(),
		set: policy.NewSet([]*policy.Policy{policyOf(1, sliding(1000, time.Second))})}
}

func (w *world) clock() quota.Millis {
	return start + w.skew + quota.Millis(w.now/quota.Time(time.Millisecond))
}

func (w *world) advance(d time.Duration) { w.now += quota.Time(d) }

func (w *world) append(m *wirev1.UsageMessage) int64 {
	b, err := proto.Marshal(m)
	if err != nil {
		w.t.Fatal(err)
	}
	w.log = append(w.log, logged{w.clock(), b})
	return int64(len(w.log) - 1)
}

// claim makes a new owner, by the steps of DESIGN 4.
func (w *world) claim() *Partition {
	nonce := uint64(len(w.log)) + 1
	epoch := w.append(&wirev1.UsageMessage{Body: &wirev1.UsageMessage_Claim{Claim: &wirev1.Claim{
		KeyFingerprint: w.keys.Fingerprint(), Instance: "a", Nonce: nonce, LogId: w.logID[:],
	}}})
	w.cfg = Config{Partitions: 1, Owner: store.Owner{LogID: w.logID, Epoch: epoch}, Nonces: []uint64{nonce}, Instance: "a", Keys: w.keys, flushBatch: w.flushBatch}
	before, err := w.store.Claim(nil, w.cfg.Owner) //nolint:staticcheck // the memory store takes none
	if err != nil {
		w.t.Fatal(err)
	}
	w.own = New(w.cfg, before, w.now)
	w.own.SetPolicies(w.set, w.now)
	w.next = 0
	if at, ok := ReplayFrom(before, w.logID); ok {
		for w.next < len(w.log) && w.log[w.next].appended < at {
			w.next++
		}
	}
	return w.own
}

// read has the owner read up to n records.
func (w *world) read(n int) {
	for ; n > 0 && w.next < len(w.log); n-- {
		r := w.log[w.next]
		w.own.Read(int64(w.next), r.appended, r.value, w.now)
		w.next++
	}
}

// load answers the owner's questions to the store.
func (w *world) load() {
	for ids := w.own.Load(); ids != nil; ids = w.own.Load() {
		saved, err := w.store.LoadCounters(nil, 0, ids) //nolint:staticcheck // as above
		if err != nil {
			w.own.LoadFailed(ids, w.now)
			return
		}
		w.own.Loaded(saved, w.now)
	}
}

func (w *world) flush() {
	f := w.own.Flush(w.now, true)
	if f == nil {
		return
	}
	w.own.Flushed(w.store.Flush(nil, f), w.now) //nolint:staticcheck // as above
}

func (w *world) tick() *wirev1.DecisionBatch {
	b := w.own.Tick(w.now)
	if b != nil {
		w.batches = append(w.batches, b)
		w.own.Sent(true, 2*time.Millisecond, w.now)
	}
	return b
}

// settle reads, loads and flushes all.
func (w *world) settle() {
	for range 10 {
		w.read(len(w.log))
		w.load()
		w.now = max(w.now, w.own.NextFlush()) // after a failure
		w.flush()
	}
}

// storedTotal is what the store holds as the counter's total.
func (w *world) storedTotal(identity []byte) uint64 {
	for _, f := range w.store.Snapshot(0)[w.keys.ID(identity)].Fields {
		if f.Index == 0 {
			return f.Value
		}
	}
	return 0
}

// podSlot is one counter in one pod, as the sidecar's reporting keeps it.
type podSlot struct {
	identity         []byte
	made, cum, acked uint64
	textAcked        bool
}

// podSim is a pod: cumulative counts, at most one unacknowledged report.
type podSim struct {
	w      *world
	name   string
	epoch  uint64
	seq    uint64
	demand float32
	slots  []*podSlot
	first  map[*podSlot]quota.Time
}

func (w *world) pod(name string, epoch uint64) *podSim {
	return &podSim{w: w, name: name, epoch: epoch, first: map[*podSlot]quota.Time{}}
}

func (p *podSim) slot(identity []byte) *podSlot {
	for _, s := range p.slots {
		if bytes.Equal(s.identity, identity) {
			return s
		}
	}
	s := &podSlot{identity: identity, made: uint64(len(p.slots) + 1)}
	p.slots = append(p.slots, s)
	return s
}

func (p *podSim) admit(identity []byte, n uint64) {
	s := p.slot(identity)
	if s.cum == s.acked {
		p.first[s] = p.w.now
	}
	s.cum += n
}

// report is the pod's next report; acked says what to do once it is acknowledged.
func (p *podSim) report() (m *wirev1.UsageMessage, acked func()) {
	tu := &wirev1.TargetUsage{Target: testTarget}
	type seen struct {
		s   *podSlot
		cum uint64
	}
	var sent []seen
	for _, s := range p.slots {
		if s.cum == s.acked {
			continue
		}
		id := p.w.keys.ID(s.identity)
		e := &wirev1.UsageEntry{IdHi: id.Hi, IdLo: id.Lo, Made: s.made, Cumulative: s.cum, Base: s.acked, Offered: s.cum,
			Demand: max(p.demand, 1), SpanMs: uint32(time.Duration(p.w.now-p.first[s]) / time.Millisecond)}
		if !s.textAcked {
			e.Identity = s.identity
		}
		tu.Entries = append(tu.Entries, e)
		sent = append(sent, seen{s, s.cum})
	}
	p.seq++
	m = &wirev1.UsageMessage{Body: &wirev1.UsageMessage_Report{Report: &wirev1.UsageReport{
		KeyFingerprint: p.w.keys.Fingerprint(), Pod: p.name, PodEpoch: p.epoch, Sequence: p.seq, LogId: p.w.logID[:],
		Targets: []*wirev1.TargetUsage{tu},
	}}}
	return m, func() {
		for _, x := range sent {
			x.s.acked, x.s.textAcked = max(x.s.acked, x.cum), true
		}
	}
}

// deliver reports and is acknowledged.
func (p *podSim) deliver() {
	m, acked := p.report()
	p.w.append(m)
	acked()
}

func (p *podSim) admitted(identity []byte) uint64 {
	if i := slices.IndexFunc(p.slots, func(s *podSlot) bool { return bytes.Equal(s.identity, identity) }); i >= 0 {
		return p.slots[i].cum
	}
	return 0
}

func mustEqual[T comparable](t testing.TB, got, want T, what string) {
	t.Helper()
	if got != want {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}

func record(b *wirev1.DecisionBatch, keys wirev1.Keys, identity []byte) *wirev1.Record {
	id := keys.ID(identity)
	for _, r := range b.GetRecords() {
		if r.IdHi == id.Hi && r.IdLo == id.Lo {
			return r
		}
	}
	return nil
}

var _ = fmt.Sprint
