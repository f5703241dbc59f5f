package agent

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/internal/bus"
	"github.com/weirproxy/weir/internal/quota"
)

// fleet is some agents, one owner of one counter and a log between them, in virtual time by 1 ms steps:
// all that a pod does but sockets and Kafka itself.
type fleet struct {
	t     *testing.T
	rnd   *rand.Rand
	now   quota.Time
	desks []*desk
	owner scriptedOwner
	due   map[quota.Time][]func()
	// offered requests/s of each pod at a time, what passed in each ms
	load   func(pod int, at time.Duration) float64
	passed []int
}

const (
	fleetFlush = 50 * time.Millisecond
	fleetTick  = 25 * time.Millisecond
	epochDate  = quota.Millis(1_790_000_000_000)
)

// scriptedOwner is quota.Total with a header each tick.
type scriptedOwner struct {
	total     *quota.Total
	moment    quota.Moment
	id        wirev1.ID
	watermark int64
	sequence  uint64
	offset    int64
	nextTick  quota.Time
	counted   uint64
}

func newFleet(t *testing.T, pods int, limits string, load func(int, time.Duration) float64) *fleet {
	f := &fleet{t: t, rnd: rand.New(rand.NewPCG(1, 2)), now: clockStart, due: map[quota.Time][]func(){}, load: load}
	for i := range pods {
		d, _ := begun(t, limits, func(c *Config) {
			c.Name = fmt.Sprint("shop/orders-", i)
			c.Clock = func() quota.Time { return f.now }
		})
		d.link = &link{sends: f.sender(i)}
		f.desks = append(f.desks, d)
	}
	d := f.desks[0]
	rule := d.set.Policies()[0].Limits[0].Rates[0].Rule
	f.owner = scriptedOwner{total: quota.NewTotal(rule, f.date()), id: d.id("a"), watermark: -1, nextTick: f.now}
	f.owner.moment = quota.Moment{Pods: pods, Flush: fleetFlush, Tick: fleetTick, Uplink: 10 * time.Millisecond}
	return f
}

func (f *fleet) date() quota.Millis {
	return epochDate + quota.Millis((f.now-clockStart)/quota.Time(time.Millisecond))
}

func (f *fleet) after(d time.Duration, what func()) {
	at := f.now + quota.Time(d)
	f.due[at] = append(f.due[at], what)
}

// delay of one hop, 2 to 10 ms.
func (f *fleet) delay() time.Duration { return time.Duration(2+f.rnd.IntN(9)) * time.Millisecond }

type sendFunc func(topic string, value []byte, done func(bus.Ack))

func (s sendFunc) Send(topic string, _ int32, _, value []byte, done func(bus.Ack)) error {
	s(topic, value, done)
	return nil
}

// sender appends reports to the log, acknowledges them, and lets the owner read them in order.
func (f *fleet) sender(pod int) Sender {
	return sendFunc(func(topic string, value []byte, done func(bus.Ack)) {
		if topic != f.desks[pod].config.Topics.Usage {
			done(bus.Ack{})
			return
		}
		f.after(f.delay(), func() {
			offset, appended := f.owner.offset, f.date()
			f.owner.offset++
			f.after(2*time.Millisecond, func() {
				done(bus.Ack{Offset: offset, Appended: time.UnixMilli(int64(appended)), Took: 8 * time.Millisecond})
			})
			f.after(3*time.Millisecond, func() { f.ingest(pod, value, offset, appended) })
		})
	})
}

func (f *fleet) ingest(pod int, value []byte, offset int64, appended quota.Millis) {
	var m wirev1.UsageMessage
	if err := proto.Unmarshal(value, &m); err != nil {
		f.t.Fatal(err)
	}
	f.owner.watermark = offset
	for _, t := range m.GetReport().GetTargets() {
		for _, e := range t.GetEntries() {
			increase, urgent := f.owner.total.Ingest(&quota.Usage{
				Pod: uint64(pod), Epoch: 1, Made: e.GetMade(), Cumulative: e.GetCumulative(), Base: e.GetBase(),
				Demand: float64(e.GetDemand()), MeanCost: float64(e.GetMeanCost()), Burst: float64(e.GetBurst()),
				Span: time.Duration(e.GetSpanMs()) * time.Millisecond, Age: time.Duration(e.GetAgeMs()) * time.Millisecond,
				Appended: appended, Offset: offset,
			}, true)
			f.owner.counted += increase
			if urgent {
				f.owner.nextTick = f.now
			}
		}
	}
}

// tick sends the owner's batch.
func (f *fleet) tick() {
	o := &f.owner
	if f.now < o.nextTick {
		return
	}
	o.nextTick = f.now + quota.Time(fleetTick)
	o.sequence++
	o.moment.Now = f.date()
	r, verdict := o.total.Tick(&o.moment)
	batch := &wirev1.DecisionBatch{Header: &wirev1.Header{
		LogId: []byte("log a"), KeyFingerprint: f.desks[0].config.Keys.Fingerprint(), Epoch: 1, Sequence: o.sequence,
		Watermark: o.watermark, OwnerTimeMs: int64(f.date()), FlushMs: 50, TickMs: 25,
		Targets: []*wirev1.TargetHeader{{Target: target, LivePods: uint32(len(f.desks))}},
	}}
	if verdict.Send {
		o.total.Sent(&r)
		batch.Records = append(batch.Records, wireRecord(o.id, &r))
	}
	value, err := proto.Marshal(batch)
	if err != nil {
		f.t.Fatal(err)
	}
	appended := time.UnixMilli(int64(f.date()))
	wait := f.delay()
	for _, d := range f.desks {
		f.after(wait, func() {
			d.batch(d.hearings[d.partitionOf(target)], bus.Message{Value: value, Appended: appended}, f.now)
		})
	}
}

func wireRecord(id wirev1.ID, r *quota.Record) *wirev1.Record {
	w := &wirev1.Record{
		IdHi: id.Hi, IdLo: id.Lo, PolicyVersion: r.PolicyVersion, Amount: r.Amount, Rate: r.Rate, Remaining: r.Remaining,
		Expire1: r.Expire1, Expire2: r.Expire2, Content: r.Content, Demand: r.Demand, MeanCost: float32(r.MeanCost),
		ShareSum: r.ShareSum, Epsilon: float32(r.Epsilon), Grant: r.Grant, Burst: float32(r.Burst), Paced: r.Paced,
		BlockedForMs: uint64(r.BlockedFor.Milliseconds()), ResetInMs: uint64(r.ResetIn.Milliseconds()),
	}
	if !math.IsInf(r.Level, 1) {
		w.Level = proto.Float64(r.Level)
	}
	return w
}

// run lets time pass.
func (f *fleet) run(d time.Duration) {
	for end := f.now + quota.Time(d); f.now < end; f.now += quota.Time(time.Millisecond) {
		for _, what := range f.due[f.now] {
			what()
		}
		delete(f.due, f.now)
		f.tick()
		passed := 0
		for i, desk := range f.desks {
			at := time.Duration(f.now - clockStart)
			for n := f.arrivals(f.load(i, at) / 1000); n > 0; n-- {
				passed += desk.passes("a", 1)
			}
			desk.turn()
		}
		f.passed = append(f.passed, passed)
	}
}

// turn is one round of the control goroutine.
func (d *desk) turn() {
	select {
	case <-d.ledger.Wake():
	default:
	}
	select {
	case <-d.urgent():
		d.pace.urgent = true
	default:
	}
	d.step()
}

func (f *fleet) arrivals(mean float64) int {
	n, limit := 0, math.Exp(-mean)
	for p := f.rnd.Float64(); p > limit; p *= f.rnd.Float64() {
		n++
	}
	return n
}

// fullest is the content of the fullest window of ms steps from a time on, mean the rate a second.
func (f *fleet) fullest(ms, from int) (fullest int, mean float64) {
	sum, total := 0, 0
	for i, n := range f.passed {
		sum += n
		if i >= ms {
			sum -= f.passed[i-ms]
		}
		if i >= from {
			total += n
			fullest = max(fullest, sum)
		}
	}
	return fullest, float64(total) * 1000 / float64(len(f.passed)-from)
}

// spread is three times a limit of 300/s, split 60/30/10 over three pods.
func spread(pod int, _ time.Duration) float64 { return []float64{540, 270, 90}[pod] }

// A steady overload, unevenly spread: no second holds much more than the limit, and all of the limit is
// used (case 1). Then everything that was admitted is in the owner's total.
func TestCase01AFleetInOverloadGetsItsLimitAndNoMore(t *testing.T) {
	for name, limits := range map[string]string{
		"sliding window": `[{name: each, counters: [Client], rates: [{limit: 300, window: 1s}]}]`,
		"token bucket":   `[{name: each, counters: [Client], rates: [{limit: 300, window: 1s, algorithm: TokenBucket, burst: 60}]}]`,
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, 3, limits, spread)
			f.run(10 * time.Second)
			fullest, mean := f.fullest(1000, 2000)
			t.Logf("fullest second %d, mean %.0f/s", fullest, mean)
			if fullest > 390 || mean < 270 || mean > 315 {
				t.Errorf("fullest second %d, want at most 390; mean %.0f/s, want 270 to 315", fullest, mean)
			}
			f.load = func(int, time.Duration) float64 { return 0 }
			f.run(2 * time.Second)
			passed := uint64(0)
			for _, n := range f.passed {
				passed += uint64(n)
			}
			if f.owner.counted != passed {
				t.Errorf("the owner counted %d, passed were %d", f.owner.counted, passed)
			}
		})
	}
}

// A limit changed in flight holds on all pods, both ways, with its count (case 3).
func TestCase03ALimitChangedUnderLoadHoldsOnAllPods(t *testing.T) {
	f := newFleet(t, 3, `[{name: each, counters: [Client], rates: [{limit: 300, window: 1s}]}]`, spread)
	f.run(4 * time.Second)
	for _, limit := range []int{600, 150} {
		for _, d := range f.desks {
			d.policy(fmt.Sprintf(`[{name: each, counters: [Client], rates: [{limit: %d, window: 1s}]}]`, limit))
			d.installIfChanged()
		}
		f.owner.total.SetRule(f.desks[0].set.Policies()[0].Limits[0].Rates[0].Rule)
		from := len(f.passed) + 1500
		f.run(5 * time.Second)
		fullest, mean := f.fullest(1000, from)
		t.Logf("limit %d: fullest second %d, mean %.0f/s", limit, fullest, mean)
		if l := float64(limit); float64(fullest) > 1.3*l || mean < 0.88*l || mean > 1.05*l {
			t.Errorf("limit %d: fullest second %d, mean %.0f/s", limit, fullest, mean)
		}
	}
}

// The owner falls silent for two seconds: pods go on with their shares alone, and all is normal after its return.
func TestASilentOwnerLeavesEachPodItsShare(t *testing.T) {
	f := newFleet(t, 3, `[{name: each, counters: [Client], rates: [{limit: 300, window: 1s}]}]`, spread)
	f.run(4 * time.Second)
	silence := f.now + quota.Time(2*time.Second)
	f.owner.nextTick = silence
	for _, ahead := range []time.Duration{2 * time.Second, 4 * time.Second} {
		from := len(f.passed)
		for end := f.now + quota.Time(ahead); f.now < end; {
			f.owner.nextTick = max(f.owner.nextTick, silence) // urgent ticks are silent too
			f.run(time.Millisecond)
		}
		fullest, mean := f.fullest(1000, from)
		t.Logf("fullest second %d, mean %.0f/s", fullest, mean)
		if fullest > 390 || mean < 200 {
			t.Errorf("fullest second %d, mean %.0f/s", fullest, mean)
		}
	}
}
