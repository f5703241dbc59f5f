package report

import (
	"bytes"
	"slices"
	"time"

	"github.com/weirproxy/weir/internal/quota"
	"github.com/weirproxy/weir/sidecar/ledger"
)

const (
	// DefaultMaxBytes bounds a report: Kafka's default bound of a record is 1 MiB.
	DefaultMaxBytes = 900 << 10

	// DefaultFlush is the period of flushes until a header says another.
	DefaultFlush = 50 * time.Millisecond
	// UrgentGap is the least time between two reports of a partition.
	UrgentGap = 10 * time.Millisecond

	// identitySilence: after so long without a report the owner may have forgotten an identity.
	identitySilence = 5 * time.Second
	// maxAwaiting bounds the acknowledged reports that await a watermark, in each partition.
	maxAwaiting = 256
)

// Config names the pod in its reports.
type Config struct {
	// Pod is namespace/pod; PodEpoch 64 random bits of this run.
	Pod      string
	PodEpoch uint64
	// KeyFingerprint is the identity key's.
	KeyFingerprint uint32
	// MaxBytes bounds a report's value; 0: DefaultMaxBytes.
	MaxBytes int
	// Included hears once of each acknowledged report that the decisions in force have come to include; nil: nobody
	// does. Where so many wait that two become one, it hears of the older.
	Included func(Times)
}

// Builder makes reports. It belongs to the control goroutine.
type Builder struct {
	config Config
	logID  []byte
	logs   int64 // how many there were
	lanes  map[int32]*lane
}

// lane is one partition's reports.
type lane struct {
	dirty    []*ledger.Slot
	sequence uint64
	inFlight *Report
	last     quota.Time // of the newest report built
	observed quota.Time // of the newest flush period in which none could be
	sent     bool
	epoch    int64 // owner epoch of the newest header; negative: none was heard of this log
	flush    time.Duration
	awaiting []awaited  // by offset
	reached  int64      // newest watermark that includes reports
	unsent   quota.Time // since when usage could not be sent, or may not have arrived; 0: all has
}

// awaited is an acknowledged report that no watermark has reached.
type awaited struct {
	offset int64
	slots  []*ledger.Slot
	times  Times // zero: told already
	since  quota.Time
}

// New returns a builder with nothing to report.
func New(c Config) *Builder {
	if c.MaxBytes <= 0 {
		c.MaxBytes = DefaultMaxBytes
	}
	return &Builder{config: c, lanes: map[int32]*lane{}}
}

func (b *Builder) lane(partition int32) *lane {
	l := b.lanes[partition]
	if l == nil {
		l = &lane{epoch: -1, flush: DefaultFlush, reached: -1}
		b.lanes[partition] = l
	}
	return l
}

// Mark notes that a counter may have something to report.
func (b *Builder) Mark(s *ledger.Slot) {
	if s.Listed || s.Freed() {
		return
	}
	s.Listed = true
	l := b.lane(s.Partition)
	l.dirty = append(l.dirty, s)
}

// Want notes that the owner asks for a counter's identity: it goes out with the next report, whether
// the counter is dirty or not.
func (b *Builder) Want(s *ledger.Slot) {
	s.Wanted = true
	s.Counter.Again()
	b.Mark(s)
}

// Dirty is how many counters wait to be reported, those of reports in flight apart.
func (b *Builder) Dirty() (n int) {
	for _, l := range b.lanes {
		n += len(l.dirty)
	}
	return n
}

// InFlight is how many reports are not acknowledged.
func (b *Builder) InFlight() (n int) {
	for _, l := range b.lanes {
		if l.inFlight != nil {
			n++
		}
	}
	return n
}

// Partitions returns those with dirty counters, in order.
func (b *Builder) Partitions() []int32 {
	var out []int32
	for p, l := range b.lanes {
		if len(l.dirty) > 0 {
			out = append(out, p)
		}
	}
	slices.Sort(out)
	return out
}

// Header takes in what a header says to reports: the owner epoch (identities travel again under a new
// one) and the flush period.
func (b *Builder) Header(partition int32, h quota.Header) {
	l := b.lane(partition)
	l.epoch = h.Epoch
	if h.Flush > 0 {
		l.flush = h.Flush
	}
}

// Clean reports whether a slot may be freed: it is in no list, and no report of it is on its way.
func (b *Builder) Clean(s *ledger.Slot) bool { return !s.Listed && !s.Counter.Dirty() }

// SetLogID says which log reports go to. Offsets of another one mean nothing: what awaited a watermark
// awaits none any more. Identities travel again: those in the other log may be gone with it, unread.
func (b *Builder) SetLogID(logID []byte) {
	if bytes.Equal(b.logID, logID) {
		return
	}
	b.logID = bytes.Clone(logID)
	b.logs++
	for _, l := range b.lanes {
		l.awaiting, l.reached, l.unsent = nil, -1, 0
		l.epoch = -1 - b.logs // none that an identity was acknowledged under
	}
}

// Awaited is when the oldest usage was handed over, or should have been, that a header of this watermark
// does not include; 0: there is none.
func (b *Builder) Awaited(partition int32, watermark int64) quota.Time {
	l := b.lane(partition)
	since := l.unsent
	if l.inFlight != nil {
		since = older(since, l.inFlight.since)
	}
	for i := range l.awaiting {
		if l.awaiting[i].offset > watermark {
			since = older(since, l.awaiting[i].since)
		}
	}
	return since
}

func older(a, b quota.Time) quota.Time {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// Included calls f for each counter in a report that the watermark has reached, once a report.
func (b *Builder) Included(partition int32, watermark int64, f func(*ledger.Slot)) {
	l := b.lane(partition)
	l.reached = max(l.reached, watermark)
	n := 0
	for n < len(l.awaiting) && l.awaiting[n].offset <= watermark {
		b.tell(&l.awaiting[n].times)
		for _, s := range l.awaiting[n].slots {
			if !s.Freed() {
				f(s)
			}
		}
		n++
	}
	kept := copy(l.awaiting, l.awaiting[n:])
	clear(l.awaiting[kept:])
	l.awaiting = l.awaiting[:kept]
}

// await keeps an acknowledged report until a watermark reaches it. At the bound the two oldest become one
// under the later's offset: what they hold is included later, never earlier, than it is.
func (l *lane) await(a awaited) {
	i, _ := slices.BinarySearchFunc(l.awaiting, a.offset, func(x awaited, offset int64) int {
		switch {
		case x.offset < offset:
			return -1
		case x.offset > offset:
			return 1
		}
		return 0
	})
	l.awaiting = slices.Insert(l.awaiting, i, a)
	if len(l.awaiting) <= maxAwaiting {
		return
	}
	first, second := l.awaiting[0], &l.awaiting[1]
	second.slots = union(first.slots, second.slots)
	second.times = earlier(first.times, second.times)
	second.since = older(first.since, second.since)
	l.awaiting = slices.Delete(l.awaiting, 0, 1)
}

func union(a, b []*ledger.Slot) []*ledger.Slot {
	in := make(map[*ledger.Slot]struct{}, len(b))
	for _, s := range b {
		in[s] = struct{}{}
	}
	out := slices.Clone(b)
	for _, s := range a {
		if _, has := in[s]; !has && !s.Freed() {
			out = append(out, s)
		}
	}
	return out
}
