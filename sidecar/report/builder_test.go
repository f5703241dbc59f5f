package report

import (
	"fmt"
	"math"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/internal/quota"
	"github.com/weirproxy/weir/sidecar/ledger"
)

const (
	ms    = quota.Time(time.Millisecond)
	start = quota.Time(time.Hour)
)

// pod is a ledger and a builder in virtual time, with limits that refuse nothing.
type pod struct {
	ledger *ledger.Ledger
	b      *Builder
	now    quota.Time
	rule   *quota.Rule
	fresh  quota.Fresh
	fleet  quota.Fleet
	rnd    quota.Rand
	// admitted units of each counter
	admitted map[uint64]uint64
	made     map[uint64]*ledger.Slot
}

func newPod(maxBytes int) *pod {
	p := &pod{
		b:        New(Config{Pod: "shop/orders-1", PodEpoch: 42, KeyFingerprint: 7, MaxBytes: maxBytes}),
		now:      start,
		rule:     &quota.Rule{Algorithm: quota.SlidingWindow, Limit: 1e9, Window: time.Second},
		rnd:      quota.NewRand(1),
		admitted: map[uint64]uint64{},
		made:     map[uint64]*ledger.Slot{},
	}
	p.ledger = ledger.New(ledger.Config{Slots: 10_000, Prepare: func(s *ledger.Slot) {
		s.Counter = new(quota.Counter)
		s.Counter.Init(s.Cell, s.Rule, s.Fresh, s.Fleet, s.Made, p.now)
	}})
	return p
}

func (p *pod) slot(n uint64) *ledger.Slot {
	s := p.ledger.Make(ledger.Key{
		ID: wirev1.ID{Hi: 1, Lo: n}, Identity: fmt.Appendf(nil, "identity of %d", n),
		Target: fmt.Sprintf("shop/Service/t%d", n%3), Partition: int32(n % 2),
		Rule: p.rule, Fresh: &p.fresh, Fleet: &p.fleet,
	})
	p.ledger.TakeMade(func(*ledger.Slot) {})
	return s
}

// spend charges a counter, as a check does.
func (p *pod) spend(n, cost uint64) {
	s := p.slot(n)
	take := []quota.Take{{Cell: s.Cell, Rule: p.rule, Fresh: &p.fresh, Fleet: &p.fleet, Cost: cost, Enforced: true}}
	if quota.Decide(p.now, take, &p.rnd, make([]quota.Outcome, 1)).OK {
		p.admitted[n] += cost
	}
	p.ledger.MarkDirty(s)
}

func (p *pod) flush(partition int32, force bool) *Report {
	p.ledger.TakeDirty(p.b.Mark)
	r, _ := p.b.Flush(partition, p.now, force)
	return r
}

func decode(t interface{ Fatal(...any) }, r *Report) *wirev1.UsageReport {
	var m wirev1.UsageMessage
	if err := proto.Unmarshal(r.Value, &m); err != nil {
		t.Fatal(err)
	}
	return m.GetReport()
}

func entry(u *wirev1.UsageReport, n uint64) *wirev1.UsageEntry {
	for _, t := range u.GetTargets() {
		for _, e := range t.GetEntries() {
			if e.GetIdLo() == n {
				return e
			}
		}
	}
	return nil
}

func TestAReportHoldsWhatItsPartitionCounted(t *testing.T) {
	p := newPod(0)
	p.b.SetLogID([]byte("log"))
	p.spend(1, 3)
	p.spend(3, 1)
	p.spend(4, 5) // of the other partition
	p.now += 50 * ms
	r := p.flush(1, false)
	u := decode(t, r)
	if u.GetPod() != "shop/orders-1" || u.GetPodEpoch() != 42 || u.GetKeyFingerprint() != 7 || u.GetSequence() != 1 ||
		string(u.GetLogId()) != "log" || len(u.GetTargets()) != 2 || r.Entries != 2 {
		t.Fatalf("report = %v", u)
	}
	e := entry(u, 1)
	if e.GetCumulative() != 3 || e.GetBase() != 0 || e.GetOffered() != 3 || e.GetMade() != 1 ||
		string(e.GetIdentity()) != "identity of 1" || e.GetAgeMs() != 50 {
		t.Errorf("entry = %v", e)
	}
	if entry(u, 4) != nil {
		t.Error("a counter of another partition is in it")
	}
}

func TestOneUnacknowledgedReportAPartitionAndLaterFlushesCoalesce(t *testing.T) {
	p := newPod(0)
	p.spend(1, 1)
	first := p.flush(1, true)
	for range 5 {
		p.now += 50 * ms
		p.spend(1, 1)
		if p.flush(1, true) != nil {
			t.Fatal("a second report before the acknowledgement of the first")
		}
	}
	p.spend(2, 1)
	if p.flush(0, true) == nil {
		t.Error("another partition waits for it")
	}
	p.b.Acknowledged(first, 10, 0, p.now)
	e := entry(decode(t, p.flush(1, true)), 1)
	if e.GetCumulative() != 6 || e.GetBase() != 1 {
		t.Errorf("the next report = %v, want cumulative 6 on base 1", e)
	}
}

func TestACounterInFlightIsNotClean(t *testing.T) {
	p := newPod(0)
	p.spend(1, 1)
	s := p.slot(1)
	r := p.flush(1, true)
	if s.Listed || p.b.Clean(s) {
		t.Errorf("listed %v, clean %v while its report is on its way", s.Listed, p.b.Clean(s))
	}
	p.b.Acknowledged(r, 1, 0, p.now)
	if !p.b.Clean(s) {
		t.Error("not clean although acknowledged")
	}
}

func TestIdentityTravelsUntilAcknowledgedAndWhenItMayBeForgotten(t *testing.T) {
	p := newPod(0)
	text := func(why string, want bool) *Report {
		t.Helper()
		p.now += 60 * ms
		p.spend(1, 1)
		r := p.flush(1, true)
		if got := len(entry(decode(t, r), 1).GetIdentity()) > 0; got != want {
			t.Errorf("%s: text %v, want %v", why, got, want)
		}
		return r
	}
	acknowledge := func(r *Report) { p.b.Acknowledged(r, int64(p.now/ms), 0, p.now) }

	p.b.Failed(text("new", true))
	acknowledge(text("after a loss", true))
	acknowledge(text("acknowledged", false))
	p.b.Failed(text("lost without text", false))
	acknowledge(text("and again", false))
	p.now += 5100 * ms
	lost := text("after silence", true)
	p.b.Failed(lost)
	acknowledge(text("after silence, lost", true))
	p.b.Header(1, quota.Header{Epoch: 77})
	acknowledge(text("a new owner", true))
	acknowledge(text("the same owner", false))

	p.b.Want(p.slot(1)) // with nothing to say
	r := p.flush(1, true)
	if r == nil || len(entry(decode(t, r), 1).GetIdentity()) == 0 {
		t.Fatal("the owner asked for the text and got none")
	}
	acknowledge(r)
	acknowledge(text("asked and answered", false))
}

// A log that is gone may have held the only copy of an identity.
func TestIdentityTravelsAgainInANewLog(t *testing.T) {
	p := newPod(0)
	for i := range 3 {
		p.b.SetLogID(fmt.Append(nil, "log ", i))
		for n, want := range []string{"identity of 1", ""} {
			p.spend(1, 1)
			p.now += 50 * ms
			r := p.flush(1, true)
			if got := string(entry(decode(t, r), 1).GetIdentity()); got != want {
				t.Errorf("log %d, report %d: identity %q, want %q", i, n, got, want)
			}
			p.b.Acknowledged(r, int64(n), 0, p.now)
		}
	}
}

func TestAReportIsBoundedAndTheRestStaysDirty(t *testing.T) {
	const counters, bound = 3000, 64 << 10
	p := newPod(bound)
	for n := range uint64(counters) {
		p.spend(2*n+1, 1)
	}
	seen := map[uint64]bool{}
	for reports := 0; ; reports++ {
		p.now += 50 * ms
		r := p.flush(1, false)
		if r == nil {
			break
		}
		if len(r.Value) > bound {
			t.Fatalf("%d bytes, at most %d", len(r.Value), bound)
		}
		for _, tu := range decode(t, r).GetTargets() {
			for _, e := range tu.GetEntries() {
				seen[e.GetIdLo()] = true
			}
		}
		p.b.Acknowledged(r, int64(reports), 0, p.now)
	}
	if len(seen) != counters || p.b.Dirty() != 0 {
		t.Errorf("%d of %d counters reported, %d still dirty", len(seen), counters, p.b.Dirty())
	}
}

func TestUrgentReportsGoAheadButNotWithinTheGap(t *testing.T) {
	p := newPod(0)
	p.rule = &quota.Rule{Algorithm: quota.SlidingWindow, Limit: 1000, Window: time.Second}
	p.spend(1, 1)
	p.b.Acknowledged(p.flush(1, false), 1, 0, p.now)
	if p.flush(1, false) != nil {
		t.Fatal("nothing to say, and yet a report")
	}
	p.now += 2 * ms
	for range 100 {
		p.spend(1, 1)
	}
	if p.flush(1, false) != nil {
		t.Error("a report 2 ms after the last")
	}
	p.now += 9 * ms
	if r := p.flush(1, false); r == nil || !r.Urgent {
		t.Errorf("a surge waits for the flush period: %+v", r)
	}
	p.now += 11 * ms
	p.spend(1, 1)
	if p.flush(1, false) != nil {
		t.Error("a calm counter is sent ahead of the flush period")
	}
}

func TestWatermarksIncludeReportsInTheOrderOfTheirOffsets(t *testing.T) {
	p := newPod(0)
	var included []uint64
	reach := func(watermark int64) []uint64 {
		included = nil
		p.b.Included(1, watermark, func(s *ledger.Slot) { included = append(included, s.ID.Lo) })
		return included
	}
	send := func(n uint64, offset int64) {
		p.now += 50 * ms
		p.spend(n, 1)
		p.b.Acknowledged(p.flush(1, true), offset, 0, p.now)
	}
	send(1, 10)
	send(3, 20)
	send(5, 30)
	if got := reach(9); len(got) != 0 {
		t.Errorf("below all: %v", got)
	}
	if got := reach(20); fmt.Sprint(got) != "[1 3]" {
		t.Errorf("up to 20: %v", got)
	}
	if got := reach(20); len(got) != 0 {
		t.Errorf("once more: %v", got)
	}
	p.b.SetLogID([]byte("another"))
	if got := reach(math.MaxInt64); len(got) != 0 {
		t.Errorf("offsets of the old log still mean something: %v", got)
	}
}

func TestWhatAwaitsAWatermarkIsBoundedAndIncludedNoEarlier(t *testing.T) {
	p := newPod(0)
	for i := range int64(3 * maxAwaiting) {
		p.now += 50 * ms
		p.spend(1+2*uint64(i%5), 1)
		p.b.Acknowledged(p.flush(1, true), i, 0, p.now)
	}
	if n := len(p.b.lane(1).awaiting); n > maxAwaiting {
		t.Fatalf("%d reports await a watermark", n)
	}
	p.b.Included(1, maxAwaiting, func(*ledger.Slot) { t.Fatal("a merged report is included before its last offset") })
	counters := map[uint64]bool{}
	p.b.Included(1, math.MaxInt64, func(s *ledger.Slot) { counters[s.ID.Lo] = true })
	if len(counters) != 5 {
		t.Errorf("%d counters included, want 5", len(counters))
	}
}

// owner adds up a log as DESIGN 3 says.
type owner struct {
	last  map[series]uint64
	total map[uint64]uint64
}

type series struct{ counter, made uint64 }

func (o *owner) consume(u *wirev1.UsageReport) {
	for _, t := range u.GetTargets() {
		for _, e := range t.GetEntries() {
			k := series{e.GetIdLo(), e.GetMade()}
			from, known := o.last[k]
			if !known {
				from = e.GetBase()
			}
			if e.GetCumulative() > from {
				o.total[k.counter] += e.GetCumulative() - from
				o.last[k] = e.GetCumulative()
			} else if !known {
				o.last[k] = from
			}
		}
	}
}

// Whatever is lost, appended without an acknowledgement, repeated, or read again after the owner's
// memory was emptied: the total is what was admitted. Counters are evicted and made again between.
func TestTotalsEqualWhatWasAdmittedProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := newPod(rapid.SampledFrom([]int{0, 2000}).Draw(t, "bytes"))
		o := &owner{last: map[series]uint64{}, total: map[uint64]uint64{}}
		offset := int64(0)
		var log []*wirev1.UsageReport
		unsure := map[int32]bool{} // partitions with a report in the log that the pod takes for lost
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			p.now += quota.Time(rapid.IntRange(1, 120).Draw(t, "ms")) * ms
			for range rapid.IntRange(0, 5).Draw(t, "requests") {
				p.spend(rapid.Uint64Range(1, 6).Draw(t, "counter"), rapid.Uint64Range(1, 9).Draw(t, "cost"))
			}
			partition := rapid.Int32Range(0, 1).Draw(t, "partition")
			if r := p.flush(partition, rapid.Bool().Draw(t, "force")); r != nil {
				offset++
				u := decode(t, r)
				switch fate := rapid.SampledFrom([]string{"ok", "ok", "ok", "lost", "no ack", "twice"}).Draw(t, "fate"); fate {
				case "lost":
					p.b.Failed(r)
				case "no ack":
					log = append(log, u)
					o.consume(u)
					p.b.Failed(r)
					unsure[partition] = true
				default:
					log = append(log, u)
					o.consume(u)
					if fate == "twice" {
						o.consume(u)
					}
					p.b.Acknowledged(r, offset, 0, p.now)
					unsure[partition] = false
				}
			}
			if len(log) > 0 && rapid.Bool().Draw(t, "replay") {
				o.consume(log[rapid.IntRange(0, len(log)-1).Draw(t, "which")])
			}
			if !unsure[0] && !unsure[1] && rapid.IntRange(0, 9).Draw(t, "empty") == 0 {
				o.last, log = map[series]uint64{}, nil // a new owner, whose totals include all of the log
			}
			for _, s := range p.ledger.Live() {
				if p.b.Clean(s) && rapid.IntRange(0, 5).Draw(t, "evict") == 0 {
					p.ledger.Remove(s)
					break
				}
			}
			p.ledger.Reclaim(p.b.Clean)
		}
		for range 200 { // healthy again: all goes out
			p.now += 50 * ms
			for partition := range int32(2) {
				if r := p.flush(partition, true); r != nil {
					offset++
					o.consume(decode(t, r))
					p.b.Acknowledged(r, offset, 0, p.now)
				}
			}
		}
		for n, want := range p.admitted {
			if o.total[n] != want {
				t.Fatalf("counter %d: the owner counted %d, admitted were %d", n, o.total[n], want)
			}
		}
		if p.b.Dirty() != 0 || p.b.InFlight() != 0 {
			t.Fatalf("%d dirty, %d in flight at the end", p.b.Dirty(), p.b.InFlight())
		}
	})
}

func TestEstimatesDoNotTakeASlowLogForABurst(t *testing.T) {
	p := newPod(0)
	p.spend(1, 1)
	r := p.flush(1, true)
	for range 40 { // 2 s without an acknowledgement, at 100 requests/s
		for range 5 {
			p.now += 10 * ms
			p.spend(1, 1)
		}
		p.flush(1, false)
	}
	p.b.Acknowledged(r, 1, 0, p.now)
	p.now += 50 * ms
	if d := entry(decode(t, p.flush(1, true)), 1).GetDemand(); d < 70 || d > 130 {
		t.Errorf("demand = %v/s after 2 s of 100/s", d)
	}
}

// What no header includes is as old as the first report that held it, whatever became of that one.
func TestAwaitedIsAsOldAsTheFirstReportThatHeldIt(t *testing.T) {
	p := newPod(0)
	want := func(watermark int64, since quota.Time) {
		t.Helper()
		if got := p.b.Awaited(0, watermark); got != since {
			t.Errorf("at watermark %d usage awaits a header since %v, want %v", watermark, got, since)
		}
	}
	want(9, 0)
	p.spend(2, 1)
	lost := p.flush(0, true)
	want(9, start)
	p.b.Failed(lost)
	want(9, start)
	p.now += 100 * ms
	p.b.Acknowledged(p.flush(0, true), 5, 0, p.now)
	want(4, start)
	want(5, 0)
	p.spend(2, 1)
	p.now += 100 * ms
	p.flush(0, true)
	want(5, start+200*ms)
	p.b.Included(0, 5, func(*ledger.Slot) {})
	want(5, start+200*ms)
}

// Usage that cannot even be handed over awaits a header too.
func TestUsageThatCannotBeSentIsAwaited(t *testing.T) {
	p := newPod(0)
	p.spend(2, 1)
	p.ledger.TakeDirty(p.b.Mark)
	p.b.Observe(0, p.now)
	p.b.Observe(0, p.now+100*ms)
	if got := p.b.Awaited(0, 9); got != start {
		t.Errorf("awaits a header since %v, want %v", got, start)
	}
}
