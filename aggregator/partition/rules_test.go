package partition

import (
	"errors"
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

// live makes a world whose owner has read its claim.
func liveWorld(t *testing.T) *world {
	w := newWorld(t)
	w.claim()
	w.read(1)
	return w
}

func (w *world) step(d time.Duration) *wirev1.DecisionBatch {
	w.advance(d)
	w.read(len(w.log))
	w.load()
	return w.tick()
}

// until steps until f holds for a batch.
func (w *world) until(t *testing.T, what string, f func(*wirev1.DecisionBatch) bool) *wirev1.DecisionBatch {
	t.Helper()
	for range 400 {
		if b := w.step(25 * time.Millisecond); b != nil && f(b) {
			return b
		}
	}
	t.Fatalf("in 10 s there was no batch with %s", what)
	return nil
}

// raw appends a report made by hand.
func (w *world) raw(change func(*wirev1.UsageReport)) {
	m := sampleReport()
	r := m.GetReport()
	r.KeyFingerprint = w.keys.Fingerprint()
	change(r)
	w.append(m)
}

func TestZombieStopsAtANewerClaim(t *testing.T) {
	w := liveWorld(t)
	old := w.own
	w.claim()
	next := w.log[len(w.log)-1]
	old.Read(int64(len(w.log)-1), next.appended, next.value, w.now)
	if !errors.Is(old.Stopped(), store.ErrFenced) {
		t.Fatalf("the older owner goes on: %v", old.Stopped())
	}
	w.advance(time.Second)
	if b := old.Tick(w.now); b != nil {
		t.Errorf("the older owner sends %v", b)
	}
	if f := old.Flush(w.now, false); f != nil {
		t.Errorf("the older owner flushes %v", f)
	}
}

// A claim of our own that was not acknowledged but appended all the same, and one under another log id
// or key, stop nobody.
func TestOtherClaimsDoNotStop(t *testing.T) {
	w := liveWorld(t)
	claim := func(c *wirev1.Claim) { w.append(&wirev1.UsageMessage{Body: &wirev1.UsageMessage_Claim{Claim: c}}) }
	claim(&wirev1.Claim{KeyFingerprint: w.keys.Fingerprint(), Nonce: w.cfg.Nonces[0], LogId: w.logID[:]})
	claim(&wirev1.Claim{KeyFingerprint: w.keys.Fingerprint(), Nonce: 12345, LogId: []byte("another log id..")})
	claim(&wirev1.Claim{KeyFingerprint: 1, Nonce: 12345, LogId: w.logID[:]})
	w.step(time.Second)
	if err := w.own.Stopped(); err != nil {
		t.Error(err)
	}
}

func TestZombieStopsAtAFencedFlush(t *testing.T) {
	w := liveWorld(t)
	p := w.pod("shop/x", 1)
	p.admit(identityOf("a", time.Second), 5)
	p.deliver()
	w.step(time.Millisecond)
	if _, err := w.store.Claim(t.Context(), store.Owner{LogID: w.logID, Epoch: 99}); err != nil {
		t.Fatal(err)
	}
	w.flush()
	if !errors.Is(w.own.Stopped(), store.ErrFenced) {
		t.Errorf("it goes on after a fenced flush: %v", w.own.Stopped())
	}
}

// No header before the own claim is read back, and none while the store cannot be read by a new owner.
func TestFirstHeaderAfterTheOwnClaim(t *testing.T) {
	w := newWorld(t)
	p := w.pod("shop/x", 1)
	p.admit(identityOf("a", time.Second), 5)
	p.deliver()
	w.claim()
	if b := w.tick(); b != nil {
		t.Fatalf("a header before anything was read: %v", b)
	}
	w.read(1)
	w.advance(10 * time.Millisecond)
	if b := w.tick(); b != nil {
		t.Fatalf("a header before the own claim was read: %v", b)
	}
	w.read(1)
	b := w.tick()
	if b == nil || b.Header.Epoch != 1 || b.Header.Sequence != 1 || b.Header.Watermark != 1 {
		t.Fatalf("the first header is %v", b.GetHeader())
	}
	if !b.Header.Deferred || len(b.Records) > 0 {
		t.Errorf("a counter whose state is not loaded yet was renewed or decided: %v", b)
	}
	if b := w.step(time.Second); b.Header.Deferred || record(b, w.keys, identityOf("a", time.Second)) == nil {
		t.Errorf("once loaded it is not decided: %v", b)
	}
}

// Watermark, sequence and owner time never go back; ticks are 100 ms apart while nothing is hot.
func TestHeadersGoOn(t *testing.T) {
	w := liveWorld(t)
	var last *wirev1.Header
	for range 40 {
		b := w.step(25 * time.Millisecond)
		if b == nil {
			continue
		}
		h := b.Header
		if last != nil && (h.Sequence != last.Sequence+1 || h.Watermark < last.Watermark || h.OwnerTimeMs < last.OwnerTimeMs) {
			t.Errorf("%v after %v", h, last)
		}
		mustEqual(t, h.TickMs, 100, "the idle period")
		last = h
	}
	mustEqual(t, len(w.batches), 11, "headers in a second, with the first")
}

func TestHotCountersAreDecidedEachTick(t *testing.T) {
	w := liveWorld(t)
	id := identityOf("a", time.Second)
	p := w.pod("shop/x", 1)
	hot := 0
	for i := range 80 { // full after 20
		p.admit(id, 50)
		p.deliver()
		if b := w.step(25 * time.Millisecond); i >= 30 && record(b, w.keys, id) != nil && b.Header.TickMs == 25 {
			hot++
		}
	}
	if hot < 48 {
		t.Errorf("%d of 50 ticks decided a counter at twice its limit", hot)
	}
}

// Shares can be had from an overloaded counter's record: what pods divide by is there, and stays as it
// was when the batch was made.
func TestRecordCarriesTheLevel(t *testing.T) {
	w := liveWorld(t)
	id := identityOf("a", time.Second)
	p, q := w.pod("shop/x", 1), w.pod("shop/y", 2)
	p.demand, q.demand = 1500, 500
	var records []*wirev1.Record
	for range 80 {
		p.admit(id, 20)
		q.admit(id, 20)
		p.deliver()
		q.deliver()
		if r := record(w.step(25*time.Millisecond), w.keys, id); r != nil {
			records = append(records, r)
		}
	}
	last := records[len(records)-1]
	eps, sum := float64(last.Epsilon), 0.0
	for _, d := range []float64{1500, 500} {
		sum += min(d+eps, last.GetLevel())
	}
	if last.Level == nil || last.GetLevel() <= 0 || sum < 0.9*last.ShareSum || sum > 1.1*last.ShareSum {
		t.Errorf("shares of demand 1500 and 500 sum to %v, the record says %v: %v", sum, last.ShareSum, last)
	}
	for _, r := range records {
		if r.Amount != 1000 || r.Level != nil && *r.Level == 0 {
			t.Fatalf("a record changed after it was sent: %v", r)
		}
	}
}

// A front is answered at once, not at the next period.
func TestUrgentTick(t *testing.T) {
	w := liveWorld(t)
	id := identityOf("a", time.Second)
	p := w.pod("shop/x", 1)
	p.admit(id, 1)
	p.deliver()
	w.until(t, "a record", func(b *wirev1.DecisionBatch) bool { return record(b, w.keys, id) != nil })
	for w.tick() != nil {
	}
	p.admit(id, 800)
	p.deliver()
	w.advance(6 * time.Millisecond)
	w.read(1)
	if at, ok := w.own.NextTick(w.now); !ok || at > w.now {
		t.Errorf("80 %% of the limit came at once, and the next tick is in %v", time.Duration(at-w.now))
	}
}

func TestOwnerTime(t *testing.T) {
	c := clock{}
	c.replay(1000)
	c.replay(900)
	mustEqual(t, c.now(5), 1000, "replay, the highest append time")
	c.start(2000, 0)
	mustEqual(t, c.now(quota.Time(time.Second)), 3000, "takeover at the stored time, and monotonic time since")
	if c.append(2500, quota.Time(time.Second)) {
		t.Error("an older append time is a jump")
	}
	mustEqual(t, c.now(quota.Time(time.Second)), 3000, "after an older append time")
	if c.append(3900, quota.Time(time.Second)) {
		t.Error("a step below 1 s is a jump")
	}
	mustEqual(t, c.now(quota.Time(time.Second)), 3900, "after a step")
	for range 2 {
		if !c.append(1_000_000, quota.Time(time.Second)) {
			t.Error("a jump is not told")
		}
	}
	mustEqual(t, c.now(quota.Time(time.Second)), 4900, "after two capped jumps at once")
	c.append(1_000_000, quota.Time(2*time.Second))
	mustEqual(t, c.now(quota.Time(2*time.Second)), 6900, "a second later the cap moves on by a second")
}

// Case 4: what was admitted before an outage belongs to the window of its append time.
func TestCase04BacklogBelongsToItsAppendTimes(t *testing.T) {
	w := liveWorld(t)
	id := identityOf("a", time.Second)
	p := w.pod("shop/x", 1)
	for range 20 { // 20 units each 100 ms, unread for 2 s
		p.admit(id, 20)
		w.advance(100 * time.Millisecond)
		p.deliver()
	}
	w.read(len(w.log))
	w.load()
	w.tick()
	sum := w.own.counters[w.keys.ID(id)].total.Sum()
	if sum < 180 || sum > 240 {
		t.Errorf("the window of 1 s holds %v, want about 200 of the 400 admitted in 2 s", sum)
	}
}

// Case 7: a pod's clock is nowhere: ages count back from the broker's append time, and absurd ones
// place units out of the window, not in the future.
func TestCase07NoPodClock(t *testing.T) {
	w := liveWorld(t)
	id := identityOf("a", time.Second)
	w.raw(func(r *wirev1.UsageReport) {
		cid := w.keys.ID(id)
		r.Targets = []*wirev1.TargetUsage{{Target: testTarget, Entries: []*wirev1.UsageEntry{
			{IdHi: cid.Hi, IdLo: cid.Lo, Made: 1, Cumulative: 10, AgeMs: 1 << 31, Identity: id},
			{IdHi: cid.Hi, IdLo: cid.Lo, Made: 2, Cumulative: 7},
		}}}
	})
	w.step(time.Millisecond)
	if got := w.own.counters[w.keys.ID(id)].total.Sum(); got != 7 {
		t.Errorf("the window holds %v, want the 7 that are new", got)
	}
}

// Nothing that is malformed, foreign or implausible stalls a partition or is counted.
func TestStrangeReportsAreSkipped(t *testing.T) {
	w := liveWorld(t)
	id := identityOf("a", time.Second)
	cid := w.keys.ID(id)
	entry := func(change func(*wirev1.UsageEntry)) func(*wirev1.UsageReport) {
		return func(r *wirev1.UsageReport) {
			e := &wirev1.UsageEntry{IdHi: cid.Hi, IdLo: cid.Lo, Made: uint64(len(w.log)), Cumulative: 3, Identity: id}
			change(e)
			r.Targets = []*wirev1.TargetUsage{{Target: testTarget, Entries: []*wirev1.UsageEntry{e}}}
		}
	}
	w.append(&wirev1.UsageMessage{})
	w.log = append(w.log, logged{w.clock(), []byte{0xff, 0xff}})
	w.log = append(w.log, logged{w.clock(), nil})
	w.raw(func(r *wirev1.UsageReport) { r.KeyFingerprint++ })
	w.raw(func(r *wirev1.UsageReport) { r.Pod = "" })
	w.raw(func(r *wirev1.UsageReport) {
		r.Targets = []*wirev1.TargetUsage{{Target: "no target", Entries: []*wirev1.UsageEntry{{IdHi: 1}}}}
	})
	w.raw(entry(func(e *wirev1.UsageEntry) { e.Identity = []byte("garbage") }))
	w.raw(entry(func(e *wirev1.UsageEntry) { e.IdHi, e.IdLo, e.Identity = 0, 0, nil }))
	w.raw(entry(func(e *wirev1.UsageEntry) { e.Cumulative = 1 << 60 }))
	w.raw(entry(func(e *wirev1.UsageEntry) { e.Base = 50 }))
	w.raw(entry(func(e *wirev1.UsageEntry) { e.Demand = -1 }))
	w.raw(entry(func(*wirev1.UsageEntry) {}))
	w.step(time.Millisecond)
	mustEqual(t, w.own.watermark, int64(len(w.log)-1), "the watermark")
	s := w.own.Stats()
	mustEqual(t, s.Fingerprint, 1, "foreign keys")
	mustEqual(t, s.Implausible, 3, "implausible entries")
	mustEqual(t, s.Foreign, 1, "foreign targets")
	if s.Malformed < 4 {
		t.Errorf("%d malformed, want at least 4", s.Malformed)
	}
	mustEqual(t, s.Units, 3, "units counted")
}

// An identity that belongs to another target is not counted to this one.
func TestForeignIdentity(t *testing.T) {
	w := liveWorld(t)
	other := wirev1.Identity{Target: "shop/Service/other", Policy: testPolicy, Limit: "each-client", Algorithm: wirev1.SlidingWindow,
		WindowMillis: 1000, Dimensions: []wirev1.Dimension{{Kind: wirev1.DimClientPrincipal, Value: "a"}}}
	text := other.Append(nil)
	id := w.keys.ID(text)
	w.raw(func(r *wirev1.UsageReport) {
		r.Targets = []*wirev1.TargetUsage{{Target: testTarget, Entries: []*wirev1.UsageEntry{
			{IdHi: id.Hi, IdLo: id.Lo, Made: 1, Cumulative: 10, Identity: text}}}}
	})
	w.step(time.Millisecond)
	mustEqual(t, w.own.Stats().Foreign, 1, "foreign identities")
	mustEqual(t, w.own.Stats().Units, 0, "units counted")
}

// A counter whose text the owner lacks waits aside, is asked for in headers, and counts once it is there;
// the store's offset does not pass it.
func TestTextIsAskedFor(t *testing.T) {
	w := liveWorld(t)
	id := identityOf("a", time.Second)
	p := w.pod("shop/x", 1)
	p.admit(id, 5)
	p.slots[0].textAcked = true // an earlier owner had it
	p.deliver()
	b := w.until(t, "a wanted id", func(b *wirev1.DecisionBatch) bool { return len(b.Header.Wanted) > 0 })
	cid := w.keys.ID(id)
	if x := b.Header.Wanted[0]; x.Hi != cid.Hi || x.Lo != cid.Lo {
		t.Fatalf("wanted %v", x)
	}
	w.now = max(w.now, w.own.NextFlush())
	w.flush()
	if got := w.own.Gauges(w.now).Stored; got >= 1 {
		t.Errorf("the store claims to have all up to %d, but offset 1 waits", got)
	}
	p.slots[0].textAcked = false
	p.admit(id, 2)
	p.deliver()
	w.settle()
	mustEqual(t, w.storedTotal(id), 7, "the stored total")
	mustEqual(t, w.own.Gauges(w.now).Stored, int64(len(w.log)-1), "the stored offset")
	if b := w.until(t, "no wanted id", func(b *wirev1.DecisionBatch) bool { return len(b.Header.Wanted) == 0 }); b == nil {
		t.Error("it is still wanted")
	}
}

// At most 64 texts a header, and an entry waits 10 s for one.
func TestWantedIsBounded(t *testing.T) {
	w := liveWorld(t)
	p := w.pod("shop/x", 1)
	for i := range 200 {
		p.admit(identityOf(fmt.Sprint(i), time.Second), 1)
	}
	for _, s := range p.slots {
		s.textAcked = true
	}
	p.deliver()
	w.until(t, "wanted ids", func(b *wirev1.DecisionBatch) bool { return len(b.Header.Wanted) > 0 })
	seen := map[uint64]bool{}
	for range 20 {
		w.step(100 * time.Millisecond)
	}
	for _, b := range w.batches {
		if n := len(b.Header.Wanted); n > 64 {
			t.Errorf("%d wanted in a header", n)
		}
		for _, x := range b.Header.Wanted {
			seen[x.Lo] = true
		}
	}
	if len(seen) != 200 {
		t.Errorf("%d of 200 were asked for in 2 s", len(seen))
	}
	for range 120 {
		w.step(100 * time.Millisecond)
	}
	mustEqual(t, w.own.Gauges(w.now).Waiting, 0, "entries that still wait after 12 s")
	mustEqual(t, w.own.Stats().NoIdentity, 200, "entries given up")
}

// A pod may hear of a policy before the aggregator: its usage waits and counts once the policy is there.
func TestUsageWaitsForItsPolicy(t *testing.T) {
	w := newWorld(t)
	set := w.set
	w.set = policy.NewSet(nil)
	w.claim()
	w.read(1)
	id := identityOf("a", time.Second)
	p := w.pod("shop/x", 1)
	p.admit(id, 5)
	p.deliver()
	w.step(time.Millisecond)
	mustEqual(t, w.own.Stats().Units, 0, "units counted without a policy")
	w.own.SetPolicies(set, w.now)
	w.settle()
	mustEqual(t, w.storedTotal(id), 5, "the stored total")
}

func TestUsageWithoutPolicyIsCountedAndIgnored(t *testing.T) {
	w := newWorld(t)
	w.set = policy.NewSet(nil)
	w.claim()
	p := w.pod("shop/x", 1)
	p.admit(identityOf("a", time.Second), 5)
	p.deliver()
	for range 120 {
		w.step(100 * time.Millisecond)
	}
	mustEqual(t, w.own.Stats().UnknownPolicy, 1, "entries without policy")
	mustEqual(t, w.own.Gauges(w.now).Waiting, 0, "entries waiting")
}

// Case 3: a changed amount keeps the count, and pods hear of it at once, both ways.
func TestCase03AmountChanges(t *testing.T) {
	w := liveWorld(t)
	id := identityOf("a", time.Second)
	p := w.pod("shop/x", 1)
	p.admit(id, 600)
	p.deliver()
	w.until(t, "a record", func(b *wirev1.DecisionBatch) bool { return record(b, w.keys, id) != nil })
	for version, limit := range map[int64]float64{2: 5000, 3: 100} {
		w.own.SetPolicies(policy.NewSet([]*policy.Policy{policyOf(version, sliding(limit, time.Second))}), w.now)
		w.advance(200 * time.Millisecond)
		b := w.tick()
		r := record(b, w.keys, id)
		if r == nil || r.PolicyVersion != version || r.Amount != limit || r.Content != 600 || r.Remaining != limit-600 {
			t.Fatalf("after the change to %v the record is %v", limit, r)
		}
	}
}

func TestDeletedPolicyStopsDeciding(t *testing.T) {
	w := liveWorld(t)
	id := identityOf("a", time.Second)
	p := w.pod("shop/x", 1)
	p.admit(id, 900)
	p.deliver()
	w.until(t, "a record", func(b *wirev1.DecisionBatch) bool { return record(b, w.keys, id) != nil })
	w.own.SetPolicies(policy.NewSet(nil), w.now)
	n := len(w.batches)
	for range 20 {
		w.step(50 * time.Millisecond)
	}
	for _, b := range w.batches[n:] {
		if record(b, w.keys, id) != nil {
			t.Fatalf("a deleted policy's counter is decided: %v", b)
		}
	}
}

// Headers name the targets that changed, and all of them each 5 s.
func TestHeaderTargets(t *testing.T) {
	w := liveWorld(t)
	w.own.SetLive(map[string]int{testTarget: 3})
	b := w.step(100 * time.Millisecond)
	if len(b.Header.Targets) != 1 || b.Header.Targets[0].LivePods != 3 {
		t.Fatalf("targets %v", b.Header.Targets)
	}
	at := map[int]bool{}
	for i := range 100 {
		if b := w.step(100 * time.Millisecond); len(b.GetHeader().GetTargets()) > 0 {
			at[i] = true
		}
	}
	if len(at) != 2 {
		t.Errorf("unchanged targets are in headers %v of 100 in 10 s, want each 5 s", at)
	}
	w.own.SetLive(map[string]int{testTarget: 4})
	if b := w.step(100 * time.Millisecond); len(b.Header.Targets) != 1 || b.Header.Targets[0].LivePods != 4 {
		t.Errorf("targets %v", b.Header.Targets)
	}
}

// A batch that may not have been appended is repeated: records and targets.
func TestLostBatchIsRepeated(t *testing.T) {
	w := liveWorld(t)
	id := identityOf("a", time.Second)
	w.own.SetLive(map[string]int{testTarget: 3})
	p := w.pod("shop/x", 1)
	p.admit(id, 100)
	p.deliver()
	w.advance(100 * time.Millisecond)
	w.read(1)
	w.load()
	b := w.own.Tick(w.now)
	if record(b, w.keys, id) == nil {
		t.Fatalf("no record in %v", b)
	}
	if again := w.own.Tick(w.now + quota.Time(time.Second)); again != nil {
		t.Fatal("a second batch while the first is under way")
	}
	w.own.Sent(false, 0, w.now)
	w.advance(100 * time.Millisecond)
	if b := w.tick(); record(b, w.keys, id) == nil || len(b.Header.Targets) != 1 || b.Header.Sequence != 2 {
		t.Errorf("after a lost batch: %v", b)
	}
}

// The budget: beyond it the counters furthest from their limit wait, and the header says so.
func TestBudgetDefersTheFurthest(t *testing.T) {
	w := newWorld(t)
	w.claim()
	w.own.cfg.BytesPerSecond = 0
	w.own.out.bytes = newBudget(20000, 20000, w.now)
	w.read(1)
	p := w.pod("shop/x", 1)
	const n = 400
	for i := range n { // the further back, the nearer to its limit
		p.admit(identityOf(fmt.Sprint(i), time.Second), uint64(100+i))
	}
	p.deliver()
	w.advance(100 * time.Millisecond)
	w.read(1)
	w.load()
	b := w.tick()
	if !b.Header.Deferred || len(b.Records) == 0 || len(b.Records) > 300 {
		t.Fatalf("deferred %v with %d records of %d", b.Header.Deferred, len(b.Records), n)
	}
	if size := proto.Size(b); size > 20100 {
		t.Errorf("%d bytes at once, the budget is 20,000", size)
	}
	least := b.Records[0].Content
	for _, r := range b.Records {
		least = min(least, r.Content)
	}
	if least < 200 {
		t.Errorf("a counter with %v units of 1000 went before those with up to 499", least)
	}
	for range 100 {
		w.step(100 * time.Millisecond)
	}
	if w.batches[len(w.batches)-1].Header.Deferred {
		t.Error("still deferred after 10 s of quiet")
	}
}

// Urgent batches are within 60 a second too.
func TestBatchBudget(t *testing.T) {
	w := liveWorld(t)
	for i := range 4 {
		w.own.SetPolicies(policy.NewSet([]*policy.Policy{policyOf(int64(i+2), sliding(100000, time.Second))}), w.now)
	}
	p := w.pod("shop/x", 1)
	n := 0
	for i := range 2000 { // a front each 5 ms, of another client each time
		p.admit(identityOf(fmt.Sprint(i%400), time.Second), 60000)
		p.deliver()
		if w.step(5*time.Millisecond) != nil {
			n++
		}
	}
	if n > 10*60+20 {
		t.Errorf("%d batches in 10 s, the budget is 600", n)
	}
}

// Case 18: a full target folds new keys into the limit's overflow counter, says so in the header, and
// leaves established counters alone; it ends once there is room.
func TestCase18FullTarget(t *testing.T) {
	w := newWorld(t)
	w.claim()
	w.own.cfg.MaxCounters = 50
	w.read(1)
	p := w.pod("shop/x", 1)
	for i := range 50 {
		p.admit(identityOf(fmt.Sprint(i), time.Second), 1)
	}
	p.deliver()
	w.step(100 * time.Millisecond)
	for i := range 100 {
		p.admit(identityOf(fmt.Sprint("new-", i), time.Second), 3)
	}
	p.admit(identityOf("7", time.Second), 5)
	p.deliver()
	b := w.until(t, "overflow", func(b *wirev1.DecisionBatch) bool {
		return slices.ContainsFunc(b.Header.Targets, func(h *wirev1.TargetHeader) bool {
			return slices.Equal(h.Overflow, []string{"shop/orders/each-client"})
		})
	})
	if b == nil {
		return
	}
	over := wirev1.Identity{Target: testTarget, Policy: testPolicy, Limit: "each-client", Algorithm: wirev1.SlidingWindow,
		WindowMillis: 1000, Dimensions: []wirev1.Dimension{{Kind: wirev1.DimOverflow}}}
	for i := range 100 { // text is acknowledged by now
		p.admit(identityOf(fmt.Sprint("new-", i), time.Second), 1)
	}
	p.deliver()
	w.settle()
	mustEqual(t, w.storedTotal(over.Append(nil)), 400, "the overflow counter's total")
	mustEqual(t, w.storedTotal(identityOf("7", time.Second)), 6, "an established counter's total")
	if n := len(w.own.counters); n > 51 {
		t.Errorf("%d counters", n)
	}
	w.advance(2 * time.Minute)
	w.until(t, "the end of overflow", func(b *wirev1.DecisionBatch) bool {
		return slices.ContainsFunc(b.Header.Targets, func(h *wirev1.TargetHeader) bool { return len(h.Overflow) == 0 })
	})
}

// Case 18: what is idle is forgotten, and a flood leaves no trace.
func TestCase18IdleCountersAreForgotten(t *testing.T) {
	w := liveWorld(t)
	p := w.pod("shop/x", 1)
	for i := range 3000 {
		p.admit(identityOf(fmt.Sprint(i), time.Second), 1)
		if i%500 == 499 {
			p.deliver()
			w.step(25 * time.Millisecond)
			w.now = max(w.now, w.own.NextFlush())
			w.flush()
		}
	}
	mustEqual(t, len(w.own.counters), 3000, "counters")
	for range 2000 {
		w.step(100 * time.Millisecond)
		w.flush()
	}
	g := w.own.Gauges(w.now)
	if g.Counters != 0 || g.Dirty != 0 || g.Waiting != 0 || len(w.own.all) != 0 {
		t.Errorf("after 200 s of silence: %+v", g)
	}
}

// Redis is away: an owner that has held the partition for longer than the window takes unseen counters as
// empty; a longer window's counters wait, and headers renew nothing meanwhile.
func TestStoreAway(t *testing.T) {
	w := newWorld(t)
	w.set = policy.NewSet([]*policy.Policy{policyOf(1, sliding(1000, time.Second), sliding(1000, time.Hour))})
	w.claim()
	w.read(1)
	p := w.pod("shop/x", 1)
	p.admit(identityOf("seen", time.Second), 5)
	p.deliver()
	for range 100 {
		w.step(100 * time.Millisecond)
	}
	w.store.SetDown(true)
	p.admit(identityOf("a", time.Second), 5)
	p.admit(identityOf("a", time.Hour), 5)
	p.deliver()
	for range 10 {
		w.step(100 * time.Millisecond)
	}
	phases := func() string {
		return phaseNames[w.own.counters[w.keys.ID(identityOf("a", time.Second))].phase] + ", " +
			phaseNames[w.own.counters[w.keys.ID(identityOf("a", time.Hour))].phase]
	}
	mustEqual(t, phases(), "live, loading", "the counters of 1 s and of 1 h")
	if b := w.step(100 * time.Millisecond); !b.Header.Deferred {
		t.Error("a header renews records of counters whose state is unknown")
	}
	w.store.SetDown(false)
	w.settle()
	mustEqual(t, phases(), "live, live", "with the store back, the counters")
	mustEqual(t, w.storedTotal(identityOf("a", time.Hour)), 5, "the total of 1 h")
	mustEqual(t, w.storedTotal(identityOf("a", time.Second)), 5, "the total of 1 s")
}

// With the store away a replay stops to be read before it fills memory.
func TestReplayWaitsForTheStore(t *testing.T) {
	w := newWorld(t)
	p := w.pod("shop/x", 1)
	for i := range 400 {
		p.admit(identityOf(fmt.Sprint(i), time.Second), 1)
		p.deliver()
	}
	w.claim()
	w.own.cfg.MaxWaiting = 100
	w.store.SetDown(true)
	for !w.own.Backlogged() && w.next < len(w.log) {
		w.read(1)
		w.load()
	}
	if w.next > 120 {
		t.Errorf("%d records were read while nothing could be loaded", w.next)
	}
	w.store.SetDown(false)
	w.settle()
	mustEqual(t, w.own.Stats().NoRoom, 0, "entries dropped")
	for i := range 400 {
		mustEqual(t, w.storedTotal(identityOf(fmt.Sprint(i), time.Second)), 1, "a total")
	}
}

// The topic made anew: totals and owner time stay, offsets begin again.
func TestNewLogKeepsTotals(t *testing.T) {
	w := liveWorld(t)
	id := identityOf("a", time.Second)
	p := w.pod("shop/x", 1)
	for range 5 {
		p.admit(id, 10)
		p.deliver()
		w.step(50 * time.Millisecond)
	}
	w.settle()
	before := w.own.Gauges(w.now).OwnerTime
	w.log, w.logID = nil, store.LogID{2}
	w.claim()
	w.read(1)
	p.admit(id, 7)
	p.deliver()
	w.step(30 * time.Millisecond)
	w.settle()
	mustEqual(t, w.storedTotal(id), 57, "the total")
	if now := w.own.Gauges(w.now).OwnerTime; now < before {
		t.Errorf("owner time went back from %d to %d", before, now)
	}
	if got := w.own.counters[w.keys.ID(id)].total.Sum(); got < 50 {
		t.Errorf("the window holds %v, want what was counted before too", got)
	}
}

// A clean handover lets the next owner read 2 s again instead of 10.
func TestReplayFrom(t *testing.T) {
	w := liveWorld(t)
	p := w.pod("shop/x", 1)
	p.admit(identityOf("a", time.Second), 1)
	p.deliver()
	w.settle()
	if !w.own.HandedOver() {
		t.Error("all is flushed, but it is not handed over")
	}
	r, err := w.store.Claim(t.Context(), store.Owner{LogID: w.logID, Epoch: 50})
	if err != nil {
		t.Fatal(err)
	}
	if at, ok := ReplayFrom(r, w.logID); !ok || at != w.log[1].appended-2000 {
		t.Errorf("clean: from %d, %v", at-start, ok)
	}
	r.Clean = false
	if at, ok := ReplayFrom(r, w.logID); !ok || at != w.log[1].appended-10000 {
		t.Errorf("not clean: from %d, %v", at-start, ok)
	}
	if _, ok := ReplayFrom(r, store.LogID{9}); ok {
		t.Error("another log's record gives a place in this one")
	}
	if _, ok := ReplayFrom(store.Record{Offset: -1}, store.LogID{}); ok {
		t.Error("no record gives a place")
	}
}

// A Calendar entry split at the reset comes as two entries of one slot.
func TestSplitEntries(t *testing.T) {
	e := func(lo, made uint64) entry { return entry{id: wirev1.ID{Lo: lo}, made: made} }
	list := []entry{e(1, 1), e(2, 1), e(2, 1), e(2, 2), e(3, 1)}
	want := []quota.Split{quota.Whole, quota.EndsAtReset, quota.StartsAtReset, quota.Whole, quota.Whole}
	for i := range list {
		mustEqual(t, splitOf(list, i), want[i], fmt.Sprint("the split of entry ", i))
	}
}

func TestInspect(t *testing.T) {
	w := liveWorld(t)
	p := w.pod("shop/x", 1)
	for i := range 5 {
		p.admit(identityOf(fmt.Sprint(i), time.Second), uint64(i))
	}
	p.admit(identityOf("a\xff", time.Second), 9)
	p.deliver()
	w.step(time.Millisecond)
	mustEqual(t, len(w.own.Inspect(Query{Limit: "shop/orders/each-client", Most: 3}, w.now)), 3, "counters of the limit")
	mustEqual(t, len(w.own.Inspect(Query{Limit: "shop/other", Most: 3}, w.now)), 0, "counters of another")
	got := w.own.Inspect(Query{ID: w.keys.ID(identityOf("a\xff", time.Second))}, w.now)
	if len(got) != 1 || got[0].Total != 9 || got[0].Left != 991 || got[0].Client != "=61ff" {
		t.Errorf("inspected %+v", got)
	}
}
