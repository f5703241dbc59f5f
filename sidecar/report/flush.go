package report

import (
	"bytes"
	"time"

	"google.golang.org/protobuf/proto"

	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/internal/quota"
	"github.com/weirproxy/weir/sidecar/ledger"
)

// Report is one message to hand to the producer at once: its ages count from when it was built.
type Report struct {
	Partition int32
	// Value is the encoded UsageMessage.
	Value []byte
	// Entries is how many counters it holds.
	Entries int
	// Urgent: it went ahead of the flush period.
	Urgent bool

	lines []line
	epoch int64
	logID []byte
	times Times
	since quota.Time
}

type line struct {
	slot     *ledger.Slot
	identity bool
}

// Flush builds the partition's next report if it is due: a flush period after the last one, sooner
// (but not within UrgentGap) if a dirty counter is urgent, at once with force, which also sends what could
// wait. It returns nil while a report of the partition is not acknowledged, or if there is nothing to say; a
// report must be followed by Acknowledged or Failed. busy: a flush was due, but had to wait.
func (b *Builder) Flush(partition int32, now quota.Time, force bool) (r *Report, busy bool) {
	l := b.lane(partition)
	due, urgent := l.due(now)
	if !force && !due && !urgent {
		return nil, false
	}
	if l.inFlight != nil {
		return nil, l.observe(now)
	}
	f := filler{b: b, l: l, now: now, force: force, left: b.config.MaxBytes - overhead, times: Times{HandedOver: now}}
	l.dirty = f.fill(l.dirty)
	l.last, l.observed = now, now
	if len(f.lines) == 0 {
		return nil, false
	}
	l.sequence++
	l.sent = true
	r = &Report{
		Partition: partition, Value: f.encode(), Entries: len(f.lines),
		Urgent: urgent && !due, lines: f.lines, epoch: l.epoch, logID: b.logID, times: f.times, since: now,
	}
	l.inFlight = r
	if r.Value == nil {
		b.Failed(r)
		return nil, false
	}
	return r, false
}

func (l *lane) due(now quota.Time) (due, urgent bool) {
	since := time.Duration(now - l.last)
	if !l.sent || since >= l.flush {
		return len(l.dirty) > 0, false
	}
	if since < UrgentGap || l.inFlight != nil {
		return false, false
	}
	for _, s := range l.dirty {
		if s.Counter.Urgent(now) {
			return false, true
		}
	}
	return false, false
}

// observe keeps the counters' estimates of demand right while no report can be sent.
func (l *lane) observe(now quota.Time) bool {
	if time.Duration(now-l.observed) < l.flush {
		return false
	}
	l.observed = now
	for _, s := range l.dirty {
		s.Counter.Observe(now, l.flush)
	}
	if l.inFlight == nil {
		return true
	}
	for _, line := range l.inFlight.lines {
		if !line.slot.Listed { // else it was observed above
			line.slot.Counter.Observe(now, l.flush)
		}
	}
	return true
}

// Observe is to be called instead of Flush while reports cannot be sent at all.
func (b *Builder) Observe(partition int32, now quota.Time) {
	l := b.lane(partition)
	l.observe(now)
	if len(l.dirty) > 0 {
		l.unsent = older(l.unsent, now)
	}
}

// Wait is how long until some partition's flush is due; 0: one is. Urgent counters may come before.
func (b *Builder) Wait(now quota.Time) time.Duration {
	wait := DefaultFlush
	for _, l := range b.lanes {
		if len(l.dirty) == 0 && l.inFlight == nil {
			continue
		}
		wait = min(wait, max(l.flush-time.Duration(now-max(l.last, l.observed)), time.Millisecond))
	}
	return wait
}

// Acknowledged says that the report is in the log.
func (b *Builder) Acknowledged(r *Report, offset int64, appended quota.Millis, now quota.Time) {
	slots := make([]*ledger.Slot, 0, len(r.lines))
	for _, line := range r.lines {
		s := line.slot
		s.Counter.Acknowledge(offset, appended, now)
		if line.identity {
			s.Acknowledged, s.IdentityEpoch = true, r.epoch
		}
		slots = append(slots, s)
	}
	if bytes.Equal(r.logID, b.logID) {
		l := b.lane(r.Partition)
		r.since, l.unsent = older(l.unsent, r.since), 0
		if offset <= l.reached { // the header came before the acknowledgement
			b.tell(&r.times)
		}
		l.await(awaited{offset, slots, r.times, r.since})
	}
	b.settle(r)
}

// Failed says that the report may not be in the log. Its counters stay dirty.
func (b *Builder) Failed(r *Report) {
	l := b.lane(r.Partition)
	l.unsent = older(l.unsent, r.since)
	for _, line := range r.lines {
		line.slot.Counter.Lost()
		line.slot.Wanted = line.slot.Wanted || line.identity
	}
	b.settle(r)
}

func (b *Builder) settle(r *Report) {
	b.lane(r.Partition).inFlight = nil
	for _, line := range r.lines {
		if !line.slot.Counter.Settled() {
			b.Mark(line.slot)
		}
	}
}

const (
	// overhead is more than a message needs around its entries, targets' names apart.
	overhead = 1 << 10
	// entryBytes is more than an entry takes without its identity: eleven fields of at most 11 bytes.
	entryBytes = 128
)

// filler fills one report.
type filler struct {
	b     *Builder
	l     *lane
	now   quota.Time
	force bool
	left  int

	targets map[string]*wirev1.TargetUsage
	report  wirev1.UsageReport
	lines   []line
	times   Times
}

// fill takes entries of the dirty counters, in order, as long as there is room, and returns those that stay.
func (f *filler) fill(dirty []*ledger.Slot) (kept []*ledger.Slot) {
	kept = dirty[:0]
	for i, s := range dirty {
		need := 2*entryBytes + s.IdentityLen() + len(s.Target) + 16
		if f.left < need {
			kept = append(kept, dirty[i:]...)
			break
		}
		entries, n := s.Counter.Flush(f.now, f.l.flush, f.force)
		switch {
		case n > 0:
			f.left -= need
			f.add(s, entries[:n])
			s.Listed = false
		case s.Counter.Settled():
			s.Listed = false
		default:
			kept = append(kept, s)
		}
	}
	clear(dirty[len(kept):])
	return kept
}

func (f *filler) add(s *ledger.Slot, entries []quota.Entry) {
	t := f.target(s.Target)
	withText := f.needsText(s)
	for i := range entries {
		f.times.take(&entries[i])
		e := wireEntry(s.ID, &entries[i])
		if withText && i == 0 {
			e.Identity = s.Identity()
		}
		t.Entries = append(t.Entries, e)
	}
	s.Wanted, s.ReportedAt = false, f.now
	f.lines = append(f.lines, line{s, withText})
}

// needsText: an identity travels until acknowledged, under a new owner epoch, after silence, and when asked for.
func (f *filler) needsText(s *ledger.Slot) bool {
	return !s.Acknowledged || s.Wanted || s.IdentityEpoch != f.l.epoch ||
		time.Duration(f.now-s.ReportedAt) > identitySilence
}

func (f *filler) target(name string) *wirev1.TargetUsage {
	if t := f.targets[name]; t != nil {
		return t
	}
	if f.targets == nil {
		f.targets = map[string]*wirev1.TargetUsage{}
	}
	t := &wirev1.TargetUsage{Target: name}
	f.targets[name] = t
	f.report.Targets = append(f.report.Targets, t)
	return t
}

func (f *filler) encode() []byte {
	r, c := &f.report, &f.b.config
	r.KeyFingerprint, r.Pod, r.PodEpoch = c.KeyFingerprint, c.Pod, c.PodEpoch
	r.Sequence, r.LogId = f.l.sequence, f.b.logID
	b, err := proto.Marshal(&wirev1.UsageMessage{Body: &wirev1.UsageMessage_Report{Report: r}})
	if err != nil {
		return nil // names are validated UTF-8; were one not, the report would be lost and its counts travel on
	}
	return b
}

func wireEntry(id wirev1.ID, e *quota.Entry) *wirev1.UsageEntry {
	w := &wirev1.UsageEntry{
		IdHi: id.Hi, IdLo: id.Lo, Made: e.Made, Cumulative: e.Cumulative, Base: e.Base, Offered: e.Offered,
		Demand: float32(e.Demand), Burst: float32(e.Burst),
		SpanMs: wireMillis(e.Span), AgeMs: wireMillis(e.Age),
	}
	if e.MeanCost != 1 {
		w.MeanCost = float32(e.MeanCost)
	}
	return w
}

func wireMillis(d time.Duration) uint32 {
	return uint32(min(max(d.Milliseconds(), 0), 1<<32-1)) //nolint:gosec // bounded
}
