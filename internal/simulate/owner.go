package simulate

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/weirproxy/weir/aggregator/partition"
	"github.com/weirproxy/weir/aggregator/store"
	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/internal/policy"
	"github.com/weirproxy/weir/internal/quota"
)

const (
	// storeWay is a call's way to the store, and back.
	storeWay  = 500 * time.Microsecond
	loadPause = 100 * time.Millisecond
	// takeover is from an owner's leaving until the next one claims.
	takeover = 100 * time.Millisecond
	// fencedPause is how long an aggregator leaves a partition alone that it was refused although nobody else has it.
	fencedPause = 8 * time.Second
)

// decision is one batch in the log.
type decision struct {
	value    []byte
	appended time.Time
	at       quota.Time
}

// owner is one aggregator that holds the partition, from claim to loss: the loop of aggregator/ingest in virtual time.
type owner struct {
	w    *world
	name string
	cfg  partition.Config
	p    *partition.Partition // nil: claiming
	next int64                // offset to be read

	policies  *policy.Set
	loadAfter quota.Time
	stepAt    quota.Time
	dead      bool
	stalled   bool
	slow      time.Duration // it reads so late, and its calls to the store take so much longer, each way
	leaving   func()        // called once all is handed over
	lastSent  bool
	held      []func() // what came while it was stalled
}

// startOwner lets an aggregator claim the partition.
func (w *world) startOwner() *owner {
	o := &owner{w: w, name: fmt.Sprint("aggregator-", len(w.owners))}
	w.owners = append(w.owners, o)
	o.claim()
	return o
}

func (o *owner) claim() {
	w := o.w
	if o.dead {
		return
	}
	if w.brokerDown {
		w.after(w.brokerWait(), o.claim)
		return
	}
	nonce := w.rng.Uint64()
	t := &w.s.Timing
	o.cfg = partition.Config{
		Partitions: partitions, Keys: w.keys, Instance: o.name, Nonces: []uint64{nonce},
		Flush: t.Flush, HotTick: t.Tick, IdleTick: t.IdleTick, BytesPerSecond: t.MaxBytes, BatchesPerSecond: t.MaxBatches,
	}
	o.cfg.Owner = store.Owner{Partition: lane, LogID: store.LogID(w.log.id)}
	value, err := proto.Marshal(&wirev1.UsageMessage{Body: &wirev1.UsageMessage_Claim{Claim: &wirev1.Claim{
		KeyFingerprint: w.keys.Fingerprint(), Instance: o.name, Nonce: nonce, LogId: o.cfg.Owner.LogID[:],
	}}})
	if err != nil {
		w.err = err
		return
	}
	o.cfg.Owner.Epoch = w.appendUsage(value, w.uniform(w.s.Network.Uplink)/2)
	w.after(2*storeWay+2*o.slow, o.writeClaim)
}

func (o *owner) writeClaim() {
	w := o.w
	if o.dead {
		return
	}
	if store.LogID(w.log.id) != o.cfg.Owner.LogID { // the topic was made anew since
		o.end()
		return
	}
	before, err := w.store.Claim(o.cfg.Owner)
	switch {
	case errors.Is(err, store.ErrFenced):
		o.end()
		return
	case err != nil:
		w.after(loadPause, o.writeClaim)
		return
	}
	o.next = w.log.first
	if at, ok := partition.ReplayFrom(before, o.cfg.Owner.LogID); ok {
		o.next = min(w.log.at(at), before.Offset+1)
	}
	if w.hooks.claimed != nil {
		w.hooks.claimed(o, before)
	}
	o.p = partition.New(o.cfg, before, w.now)
	o.step()
}

// step does all that is due, as the loop of aggregator/ingest does.
func (o *owner) step() {
	if o.dead || o.stalled || o.p == nil {
		return
	}
	w, now := o.w, o.w.now
	if o.policies != w.policies.ownerSet {
		o.policies = w.policies.ownerSet
		o.p.SetPolicies(o.policies, now)
	}
	if o.leaving == nil {
		o.read()
	}
	o.p.SetLive(w.live)
	if now >= o.loadAfter {
		if ids := o.p.Load(); ids != nil {
			o.load(ids)
		}
	}
	if o.leaving != nil && o.p.HandedOver() && (o.lastSent || !o.p.Live()) || o.p.Stopped() != nil {
		o.end()
		return
	}
	if now >= o.p.NextFlush() || o.leaving != nil {
		o.flush()
	}
	o.tick()
	o.plan()
}

func (o *owner) end() {
	o.dead = true
	if o.leaving != nil {
		o.leaving()
		return
	}
	o.w.after(fencedPause, func() {
		if o == o.w.owner() {
			o.w.startOwner()
		}
	})
}

func (o *owner) read() {
	w := o.w
	if store.LogID(w.log.id) != o.cfg.Owner.LogID || w.brokerDown {
		return
	}
	o.next = max(o.next, w.log.first)
	for o.next < w.log.end() && !o.p.Backlogged() {
		r := &w.log.records[o.next-w.log.first]
		if r.readable+quota.Time(o.slow) > w.now {
			return
		}
		o.p.Read(o.next, r.appended, r.value, w.now)
		o.next++
	}
}

// tick sends the batch that is due.
func (o *owner) tick() {
	var b *wirev1.DecisionBatch
	if o.leaving != nil {
		if o.lastSent {
			return
		}
		b = o.p.Last(o.w.now)
		o.lastSent = b != nil || !o.p.Live()
	} else {
		b = o.p.Tick(o.w.now)
	}
	if b == nil {
		return
	}
	value, err := proto.Marshal(b)
	if err != nil {
		o.w.err = err
		return
	}
	o.w.tally.batches++
	o.w.tally.records += uint64(len(b.Records))
	o.send(value, o.w.now)
}

// send takes a batch to the log and from there to the pods: half of the shortest way to the log, the rest from there.
func (o *owner) send(value []byte, sent quota.Time) {
	w := o.w
	way := w.s.Network.Downlink.Min / 2
	w.after(way, func() {
		switch {
		case w.brokerDown && time.Duration(w.now-sent) >= produceTimeout:
			o.later(func() { o.p.Sent(false, 0, w.now) })
		case w.brokerDown:
			w.after(min(w.brokerWait(), produceTimeout), func() { o.send(value, sent) })
		default:
			w.deliver(&decision{value, w.appendTime(), w.now}, way)
			w.after(way, func() { o.later(func() { o.p.Sent(true, time.Duration(w.now-sent), w.now) }) })
		}
	})
}

// deliver takes a batch from the log to each pod.
func (w *world) deliver(d *decision, gone time.Duration) {
	for len(w.history) > 0 && w.history[0].at < w.now-quota.Time(newPodReads) {
		w.history = w.history[1:]
	}
	w.history = append(w.history, *d)
	for _, p := range w.pods {
		if p.dead || w.lost(w.chance.decisionLoss) {
			continue
		}
		way := w.uniform(w.s.Network.Downlink) + w.tail() - gone
		p.hear(d, w.now+quota.Time(way))
	}
	for _, p := range w.leaving {
		if !p.dead {
			p.hear(d, w.now+quota.Time(w.uniform(w.s.Network.Downlink)-gone))
		}
	}
}

// later runs what comes to the owner: at once, or when it is no longer stalled.
func (o *owner) later(f func()) {
	switch {
	case o.dead:
	case o.stalled:
		o.held = append(o.held, f)
	default:
		f()
		o.step()
	}
}

func (o *owner) load(ids []wirev1.ID) {
	w := o.w
	w.after(storeWay+o.slow, func() {
		saved, err := w.store.Load(lane, ids)
		w.after(storeWay+o.slow, func() {
			o.later(func() {
				if err != nil {
					o.loadAfter = w.now + quota.Time(loadPause)
					o.p.LoadFailed(ids, w.now)
					return
				}
				o.p.Loaded(saved, w.now)
			})
		})
	})
}

func (o *owner) flush() {
	w := o.w
	f := o.p.Flush(w.now, o.leaving != nil)
	if f == nil {
		return
	}
	w.after(storeWay+o.slow, func() {
		err := o.write(f)
		w.after(storeWay+o.slow, func() { o.later(func() { o.p.Flushed(err, w.now) }) })
	})
}

// write takes a flush to the store, and returns what the owner hears of it.
func (o *owner) write(f *store.Flush) error {
	w := o.w
	if w.lost(w.chance.flushLate) {
		late := copyOf(f)
		w.after(w.late(), func() { _ = o.put(late) })
		return errStoreTimeout
	}
	if err := o.put(f); err != nil || !w.lost(w.chance.flushUnanswered) {
		return err
	}
	return errStoreTimeout
}

var errStoreTimeout = fmt.Errorf("simulated: %w in time", store.ErrUnavailable)

func (o *owner) put(f *store.Flush) error {
	err := o.w.store.Flush(f)
	if o.w.hooks.flushed != nil {
		o.w.hooks.flushed(o, err)
	}
	return err
}

// copyOf keeps a flush beyond its owner's use of it.
func copyOf(f *store.Flush) *store.Flush {
	out := *f
	out.Counters = slices.Clone(f.Counters)
	for i := range out.Counters {
		out.Counters[i].Fields = slices.Clone(out.Counters[i].Fields)
	}
	return &out
}

// wake has the owner look at what changed around it.
func (o *owner) wake() { o.step() }

// plan has the owner step again when something is due.
func (o *owner) plan() {
	now := o.w.now
	next := max(o.p.NextFlush(), now+quota.Time(time.Millisecond))
	if at, ok := o.p.NextTick(now); ok && o.leaving == nil {
		next = min(next, max(at, now+quota.Time(wakeUp)))
	}
	if o.loadAfter > now {
		next = min(next, o.loadAfter)
	}
	if o.stepAt > now && o.stepAt <= next {
		return
	}
	o.stepAt = next
	o.w.queue.put(next, func() {
		if o.stepAt == next {
			o.stepAt = 0
			o.step()
		}
	})
}

// kill ends the owner at once.
func (o *owner) kill() { o.dead = true }

// leave lets it hand over; then is called when that is done.
func (o *owner) leave(then func()) {
	if o.p == nil || o.dead {
		o.dead = true
		then()
		return
	}
	o.leaving = then
	o.step()
}

// stall stops it for a while: what comes meanwhile, comes afterwards.
func (o *owner) stall(d time.Duration) {
	o.stalled = true
	o.w.after(d, func() {
		o.stalled = false
		held := o.held
		o.held = nil
		for _, f := range held {
			o.later(f)
		}
		o.step()
	})
}
