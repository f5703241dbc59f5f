package partition

import (
	"fmt"
	"testing"
	"time"

	"github.com/weirproxy/weir/internal/policy"
)

// After a takeover many counters that hold next to nothing are told to pods again. They wait for the budget,
// and those that matter are renewed meanwhile.
func TestTakeoverOfManyQuietCounters(t *testing.T) {
	w := liveWorld(t)
	p := w.pod("shop/x", 1)
	p.demand = 0.5
	const n = 2000
	for i := range n {
		p.admit(identityOf(fmt.Sprint(i), time.Second), 1)
	}
	busy := identityOf("busy", time.Second)
	p.admit(busy, 500)
	p.deliver()
	w.settle()

	w.claim()
	w.own.out.bytes = newBudget(4000, 4000, w.now)
	w.read(len(w.log))
	w.load()
	b := w.tick()
	if record(b, w.keys, busy) == nil {
		t.Errorf("the busy counter's record is not among the first %d", len(b.Records))
	}
	if b.Header.Deferred || len(b.Records) > n/4 {
		t.Errorf("deferred %v with %d records: quiet counters keep others from being renewed", b.Header.Deferred, len(b.Records))
	}
}

// A counter that the store no longer has, although all up to the stored offset was in it, has run out:
// what a replay reads of it counts nothing, and what comes later counts from there.
func TestReplayedUsageOfACounterThatRanOut(t *testing.T) {
	w := liveWorld(t)
	id := identityOf("a", time.Second)
	p := w.pod("shop/x", 1)
	for range 3 {
		p.admit(id, 10)
		p.deliver()
		w.step(50 * time.Millisecond)
	}
	w.settle()
	w.store.Expire(0, w.keys.ID(id))
	w.claim()
	w.settle()
	mustEqual(t, w.own.counters[w.keys.ID(id)].total.Admitted(), 0, "units counted again by the replay")
	p.admit(id, 7)
	p.deliver()
	w.settle()
	mustEqual(t, w.own.counters[w.keys.ID(id)].total.Admitted(), 7, "the total since")
	mustEqual(t, w.storedTotal(id), 7, "the stored total")
}

// What an owner writes while it still replays does not take the stored owner time back.
func TestReplayKeepsTheStoredOwnerTime(t *testing.T) {
	w := liveWorld(t)
	p := w.pod("shop/x", 1)
	p.admit(identityOf("a", time.Second), 10)
	p.deliver()
	w.advance(time.Minute)
	w.settle()
	time0 := w.own.Gauges(w.now).OwnerTime
	w.claim()
	w.read(2)
	w.load()
	if f := w.own.Flush(w.now, true); f == nil || f.OwnerTime < time0 {
		t.Errorf("a flush amid the replay is %+v, owner time was %d before", f, time0)
	}
}

// A counter written ahead of the partition's record, which waits for another one's write, is not counted again from there.
func TestACounterWrittenAheadOfTheRecordCountsOnce(t *testing.T) {
	w := newWorld(t)
	w.flushBatch = 1
	w.claim()
	w.settle()
	ahead, behind := identityOf("ahead", time.Second), identityOf("behind", time.Second)
	p := w.pod("shop/x", 1)
	for _, id := range [][]byte{ahead, behind} { // so that the store has them
		p.admit(id, 1)
		p.deliver()
		w.settle()
	}
	for _, id := range [][]byte{ahead, behind, ahead} {
		p.admit(id, 10)
		p.deliver()
	}
	w.read(len(w.log))
	w.flush() // the first of two
	mustEqual(t, w.storedTotal(ahead), 21, "the stored total of what is written ahead")
	mustEqual(t, w.storedTotal(behind), 1, "the stored total of what waits")
	w.claim()
	w.settle()
	mustEqual(t, w.storedTotal(ahead), 21, "the heir's total of what was written ahead")
	mustEqual(t, w.storedTotal(behind), 11, "the heir's total of what waited")
}

// A report that came late, below the stored offset, teaches a new owner and no more, although its counter last changed
// long before it and the replay holds no earlier report of its pod.
func TestALateReportBelowTheStoredOffsetCountsNothing(t *testing.T) {
	w := liveWorld(t)
	id := identityOf("a", time.Second)
	p := w.pod("shop/x", 1)
	p.admit(id, 10)
	late, acked := p.report()
	w.append(late)
	acked()
	p.admit(id, 10)
	p.deliver()
	w.settle()
	w.advance(3 * time.Second)
	w.append(late)
	w.settle()
	w.claim() // after a clean handover: a replay of 2 s
	w.settle()
	mustEqual(t, w.own.counters[w.keys.ID(id)].total.Admitted(), 20, "the heir's total")
}

// What a store lost while nothing is reported is written again all the same: else it would be gone with the owner, once the
// log no longer has it.
func TestAQuietOwnerNoticesWhatTheStoreLost(t *testing.T) {
	w := liveWorld(t)
	id := identityOf("a", time.Second)
	p := w.pod("shop/x", 1)
	p.admit(id, 10)
	p.deliver()
	w.settle()
	w.store.Empty()
	for range 12 {
		w.advance(time.Second)
		if f := w.own.Flush(w.now, false); f != nil {
			w.own.Flushed(w.store.Flush(t.Context(), f), w.now)
		}
	}
	mustEqual(t, w.storedTotal(id), 10, "the stored total, with no report since the loss")
}

// While the store is away, a flood of new keys with a long window does not freeze the others' totals.
func TestCase18NewKeysWhileTheStoreIsAway(t *testing.T) {
	w := newWorld(t)
	w.set = policy.NewSet([]*policy.Policy{policyOf(1, sliding(1000, time.Second), sliding(1000, time.Hour))})
	w.claim()
	w.read(1)
	w.own.cfg.MaxWaiting = 100
	known := identityOf("known", time.Hour)
	p := w.pod("shop/x", 1)
	p.admit(known, 1)
	p.deliver()
	w.step(100 * time.Millisecond)
	w.store.SetDown(true)
	for i := range 400 {
		p.admit(identityOf(fmt.Sprint(i), time.Hour), 1)
	}
	p.deliver()
	w.step(100 * time.Millisecond)
	if w.own.Backlogged() {
		t.Error("a live owner reads no more because of keys that it cannot load")
	}
	mustEqual(t, w.own.Gauges(w.now).Waiting, 100, "entries waiting")
	mustEqual(t, w.own.Stats().NoRoom, 300, "entries dropped and counted")
	p.admit(known, 5)
	p.deliver()
	w.step(100 * time.Millisecond)
	mustEqual(t, w.own.counters[w.keys.ID(known)].total.Admitted(), 6, "the known counter's total")
}

// A policy goes while its counter has something to write, and more comes: the next owner, which has the
// policy again, counts what the store does not hold.
func TestWhatWaitsForAPolicyIsNotTakenForStored(t *testing.T) {
	w := liveWorld(t)
	id := identityOf("a", time.Second)
	p := w.pod("shop/x", 1)
	p.admit(id, 10)
	p.deliver()
	w.step(50 * time.Millisecond)
	w.own.SetPolicies(policy.NewSet(nil), w.now)
	p.admit(id, 5)
	p.deliver()
	w.read(len(w.log))
	w.flush()
	w.claim()
	w.settle()
	mustEqual(t, w.own.counters[w.keys.ID(id)].total.Admitted(), 15, "the heir's total")
}

// A counter that was unlimited for a while begins empty, in the store too.
func TestUnlimitedForAWhile(t *testing.T) {
	w := liveWorld(t)
	w.advance(time.Second)
	id := identityOf("a", time.Second)
	p := w.pod("shop/x", 1)
	p.admit(id, 900)
	p.deliver()
	w.settle()
	c := w.own.counters[w.keys.ID(id)]
	w.advance(300 * time.Millisecond)
	for _, set := range []*policy.Set{unlimited(t), w.set} {
		w.own.SetPolicies(set, w.now)
	}
	p.admit(id, 5)
	p.deliver()
	w.settle()
	mustEqual(t, c.total.Sum(), 5, "the content")
	for _, f := range w.store.Snapshot(0)[c.id].Fields {
		if f.Value == 900 {
			t.Errorf("the store's field %d is what was counted before", f.Index)
		}
	}
}

// unlimited is the policy with an override for client a.
func unlimited(t *testing.T) *policy.Set {
	t.Helper()
	docs, err := policy.Parse("test", []byte(`apiVersion: weirproxy.dev/v1alpha1
kind: QuotaPolicy
metadata: {name: orders, namespace: shop}
spec:
  targetRefs: [{group: "", kind: Service, name: orders}]
  client: [{source: Principal}]
  limits:
  - name: each-client
    counters: [Client]
    rates: [{limit: 1000, window: 1s}]
    overrides: [{clients: [{source: Principal, value: a}], unlimited: true}]
`))
	if err != nil {
		t.Fatal(err)
	}
	key, msg, err := policy.Encode(policy.OriginFile, docs[0], testKeys(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	compiled, err := policy.Decode(key, 9, msg)
	if err != nil {
		t.Fatal(err)
	}
	return policy.NewSet([]*policy.Policy{compiled})
}
