package agent

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/internal/bus"
	"github.com/weirproxy/weir/internal/quota"
)

// many are n policies as the topic holds them, the pod's own first.
func many(tb testing.TB, keys wirev1.Keys, n int, limit int) []bus.Message {
	tb.Helper()
	out := make([]bus.Message, n)
	for i := range out {
		name := "orders"
		if i > 0 {
			name = fmt.Sprintf("service-%d", i)
		}
		m := &wirev1.PolicyMessage{Body: &wirev1.PolicyMessage_Policy{Policy: &wirev1.Policy{
			SchemaVersion: 1, Origin: "file", Namespace: "shop", Name: name,
			Document: fmt.Appendf(nil, `{"apiVersion":"weirproxy.dev/v1alpha1","kind":"QuotaPolicy","metadata":{"name":%[1]q,"namespace":"shop"},`+
				`"spec":{"targetRefs":[{"group":"apps","kind":"Deployment","name":%[1]q}],"client":[{"source":"Header","name":"x-client","reveal":true}],`+
				`"limits":[{"name":"each","counters":["Client"],"rates":[{"limit":%[2]d,"window":"1h0m0s"}]}]}}`, name, limit),
		}}}
		value, err := proto.Marshal(m)
		if err != nil {
			tb.Fatal(err)
		}
		out[i] = bus.Message{Key: []byte("file/shop/" + name), Offset: int64(100 + i), Value: value}
	}
	return out
}

// read hands records over as the reader does, without its goroutine, and returns what would end its wait.
func (d *desk) read(records []bus.Message) chan struct{} {
	b := backlog{records: records, taken: make(chan struct{})}
	d.pieces.backlog = append(d.pieces.backlog, b)
	return b.taken
}

// A reload is taken up a piece a turn, each followed by a rest in which checks have the processor; nothing is in force
// before all of it is.
func TestAReloadIsTakenUpInPieces(t *testing.T) {
	now := clockStart
	d, _ := begun(t, each100, func(c *Config) { c.Clock = func() quota.Time { return now } })
	const n = 10*recordsAtOnce + 1
	taken := d.read(many(t, d.config.Keys, n, 7))
	turns := 0
	for before := len(d.policies.byKey); len(d.pieces.backlog) > 0; turns++ {
		wait := d.work(now)
		if got := len(d.policies.byKey) - before; got > recordsAtOnce {
			t.Fatalf("%d policies at once", got)
		}
		before = len(d.policies.byKey)
		if len(d.pieces.backlog) > 0 && (wait < rest || len(d.set.Policies()) > 1) {
			t.Fatalf("after a piece: a rest of %v, %d policies in force", wait, len(d.set.Policies()))
		}
	}
	<-taken
	now += quota.Time(installGap)
	d.work(now)
	if got := len(d.set.Policies()); turns != 11 || got != n {
		t.Errorf("%d turns, then %d of %d policies are in force", turns, got, n)
	}
}

// Before any policy is known no check waits for the processor: a start does not rest.
func TestAStartDoesNotRest(t *testing.T) {
	d := newDesk(t)
	d.installation(4)
	d.read(many(t, d.config.Keys, 10*recordsAtOnce, 7))
	for len(d.pieces.backlog) > 1 {
		if wait := d.work(d.now()); wait > 0 && len(d.pieces.backlog) > 0 {
			t.Fatalf("a rest of %v", wait)
		}
	}
	for len(d.pieces.backlog) > 0 {
		d.work(d.now())
	}
	d.policiesRead()
	d.work(d.now())
	if d.passes("a", 1) != 1 {
		t.Error("no policy is in force")
	}
}

// Changes that come one by one make few snapshots: the first at once, then one a gap.
func TestABurstOfChangesMakesFewSnapshots(t *testing.T) {
	now := clockStart
	d, _ := begun(t, each100, func(c *Config) { c.Clock = func() quota.Time { return now } })
	now += quota.Time(installGap)
	snapshots, last := 0, d.Checker().Snapshot()
	for i := range 100 {
		d.policy(fmt.Sprintf(`[{name: each, counters: [Client], rates: [{limit: %d, window: 1h}]}]`, 10+i))
		d.work(now)
		if v := d.policiesView().Policies[0].Version; v != d.set.Policies()[0].Version {
			t.Fatalf("version %d is said to be in force, %d is", v, d.set.Policies()[0].Version)
		}
		if s := d.Checker().Snapshot(); s != last {
			snapshots, last = snapshots+1, s
		}
		now += quota.Time(time.Millisecond)
	}
	wait := d.work(now)
	now += quota.Time(wait)
	d.work(now)
	if amount := last.Policies[0].Limits[0].Rates[0].Rule.Limit; snapshots != 2 || amount >= 109 {
		t.Errorf("%d snapshots in 100 ms of changes, the last with %v", snapshots, amount)
	}
	if v := d.policiesView().Policies[0].Version; v != d.version {
		t.Errorf("version %d is said to be in force, want %d", v, d.version)
	}
	if amount := d.set.Policies()[0].Limits[0].Rates[0].Rule.Limit; amount != 109 {
		t.Errorf("the last change is not in force after the gap: %v", amount)
	}
}

// Counters are put under new rules a piece a turn too, whatever is removed between.
func TestCountersAreRefittedInPieces(t *testing.T) {
	now := clockStart
	d, _ := begun(t, each100, func(c *Config) { c.Clock = func() quota.Time { return now } })
	const n = 3*slotsAtOnce + 5
	for i := range n {
		d.passes(fmt.Sprint("client-", i), 1)
	}
	d.takeMade(now)
	d.policy(`[{name: each, counters: [Client], rates: [{limit: 7, window: 1h}]}]`)
	now += quota.Time(installGap)
	d.work(now)
	under := func() (n int) {
		for _, s := range d.ledger.Live() {
			if s.Counter.Rule().Limit == 7 {
				n++
			}
		}
		return n
	}
	if got := under(); got != slotsAtOnce {
		t.Fatalf("%d counters at once", got)
	}
	d.ledger.Remove(d.ledger.Live()[3])
	d.ledger.Remove(d.ledger.Live()[len(d.ledger.Live())-1])
	for d.pieces.unfit > 0 {
		if wait := d.work(now); d.pieces.unfit > 0 && wait > rest {
			t.Fatalf("goes on after %v", wait)
		}
	}
	if got := under(); got != len(d.ledger.Live()) {
		t.Errorf("%d of %d counters are under the new rule", got, len(d.ledger.Live()))
	}
}

// Policies that change faster than all counters can be put under them do not leave some under old ones for ever.
func TestEachCounterComesUnderNewRulesHoweverOftenTheyChange(t *testing.T) {
	now := clockStart
	d, _ := begun(t, each100, func(c *Config) { c.Clock = func() quota.Time { return now } })
	for i := range 20 * slotsAtOnce {
		d.passes(fmt.Sprint("client-", i), 1)
	}
	d.takeMade(now)
	first := d.ledger.Live()[0]
	for i := range 100 {
		d.policy(fmt.Sprintf(`[{name: each, counters: [Client], rates: [{limit: %d, window: 1h}]}]`, 1000+i))
		now += quota.Time(installGap / 10)
		d.work(now)
	}
	if got := first.Counter.Rule().Limit; got < 1000 {
		t.Errorf("still under %v a window", got)
	}
}

// Ready is not said before there are policies to decide by.
func TestThePoliciesAreAReasonUntilTheyAreInForce(t *testing.T) {
	d := newDesk(t)
	d.installation(4)
	d.reasons.set(ReasonPolicies, "not yet read")
	waits := func() bool {
		return slices.ContainsFunc(d.reasons.list(), func(r Reason) bool { return r.Code == ReasonPolicies })
	}
	d.policiesRead()
	d.read(many(t, d.config.Keys, recordsAtOnce+1, 7)) // more came while the end was reached
	d.work(d.now())
	if d.Checker().Snapshot() != nil || !waits() {
		t.Fatalf("a snapshot: %v; the reason is there: %v", d.Checker().Snapshot() != nil, waits())
	}
	for len(d.pieces.backlog) > 0 {
		d.work(d.now())
	}
	d.work(d.now())
	if d.Checker().Snapshot() == nil || waits() {
		t.Error("the policies are in force, and still a reason")
	}
}

// A record that says what the good version said is not compiled again; under another offset it has another version.
func TestAnUnchangedPolicyIsNotCompiledAgain(t *testing.T) {
	d := newDesk(t)
	records := many(t, d.config.Keys, 2, 7)
	put := func(m bus.Message, offset int64) {
		d.policyRecord(string(m.Key), offset, m.Value)
	}
	for _, m := range records {
		put(m, m.Offset)
	}
	d.policies.readToEnd()
	d.policies.changed = false
	good := d.policies.byKey["file/shop/orders"].good
	put(records[0], records[0].Offset)
	if d.policies.changed || d.policies.byKey["file/shop/orders"].good != good {
		t.Error("the same record read again changes something")
	}
	put(records[0], 500)
	again := d.policies.byKey["file/shop/orders"].good
	if !d.policies.changed || again.Version != 500 || &again.Targets[0] != &good.Targets[0] {
		t.Errorf("published again: changed %v, version %d", d.policies.changed, again.Version)
	}
}

// The reader waits until its records are taken up, and no longer than its life.
func TestTheReaderIsHeldToWhatIsTakenUp(t *testing.T) {
	d := newDesk(t)
	ended := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { d.takeUp(ctx, many(t, d.config.Keys, recordsAtOnce+1, 7)); close(ended) }()
	(<-d.events)()
	d.work(d.now())
	select {
	case <-ended:
		t.Fatal("it goes on before all is taken up")
	default:
	}
	d.work(d.now())
	<-ended
	ended = make(chan struct{})
	go func() { d.takeUp(ctx, many(t, d.config.Keys, 1, 7)); close(ended) }()
	(<-d.events)()
	cancel()
	<-ended
}

// The file is what encoding/json writes of it, whatever it holds.
func TestTheFileIsWrittenAsItIsRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	for _, want := range []*lastGood{
		{Fingerprint: math.MaxUint32, Partitions: 4, Policies: []savedPolicy{}},
		{Fingerprint: math.MaxUint32, Policies: []savedPolicy{{"a\"/<b", 1, []byte{0, 255}}, {"c", 2, nil}}, LivePods: map[string]uint32{"t": 3}},
	} {
		if err := saveLastGood(path, want); err != nil {
			t.Fatal(err)
		}
		got, err := loadLastGood(path, want.Fingerprint)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%+v, %v; want %+v", got, err, want)
		}
	}
}

// BenchmarkReload is 1,000 policies that all changed, that were only published again, and that are in force: the control
// goroutine's work from the records to the last counter of 10,000.
func BenchmarkReload(b *testing.B) {
	d, sets := reloadable(b)
	for _, c := range []struct {
		name string
		next func(i int) []bus.Message
	}{
		{"changed", func(i int) []bus.Message { return sets[i%2] }},
		{"published-again", func(int) []bus.Message { return sets[0] }},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				for _, m := range c.next(i) {
					d.version++
					d.policyRecord(string(m.Key), 10_000+d.version, m.Value)
				}
				d.installIfChanged()
			}
		})
	}
}

func reloadable(b *testing.B) (*desk, [2][]bus.Message) {
	b.Helper()
	d := newDesk(b)
	sets := [2][]bus.Message{many(b, d.config.Keys, 1000, 7_000), many(b, d.config.Keys, 1000, 8_000)}
	for _, m := range sets[1] {
		d.policyRecord(string(m.Key), m.Offset, m.Value)
	}
	d.policiesRead()
	d.installIfChanged()
	for i := range 10_000 {
		d.passes(fmt.Sprint("client-", i), 1)
	}
	d.takeMade(d.now())
	return d, sets
}

// BenchmarkDecisions is one decision of a batch of 25, heard by a pod that has its counter.
func BenchmarkDecisions(b *testing.B) {
	d, _ := reloadable(b)
	h := newHearing(0, d.config.Keys.Fingerprint(), nil)
	d.hearings[0] = h
	h.feed.SetCaughtUp()
	batch := &wirev1.DecisionBatch{Header: &wirev1.Header{KeyFingerprint: d.config.Keys.Fingerprint(), Epoch: 1, Watermark: -1, FlushMs: 50, TickMs: 25}}
	for i := range 25 {
		batch.Records = append(batch.Records, blocked(d.id(fmt.Sprint("client-", i))))
	}
	var values [][]byte
	for i := range 4096 {
		batch.Header.Sequence = uint64(i + 1)
		value, err := proto.Marshal(batch)
		if err != nil {
			b.Fatal(err)
		}
		values = append(values, value)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if i%(25*len(values)) == 0 {
			h.feed = newHearing(0, d.config.Keys.Fingerprint(), nil).feed
			h.feed.SetCaughtUp()
		}
		if i%25 == 0 {
			d.batch(h, bus.Message{Value: values[i/25%len(values)], Appended: d.appended}, d.now())
		}
	}
}
