package feed

import (
	"bytes"

	"google.golang.org/protobuf/proto"

	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/internal/quota"
)

// Ignored says why something of a batch was not taken; "" is none.
type Ignored string

// The reasons. They are label values of a metric.
const (
	Malformed   Ignored = "malformed"
	Fingerprint Ignored = "fingerprint"  // made with another identity key
	LogID       Ignored = "log_id"       // of another weir.usage
	OldEpoch    Ignored = "old_epoch"    // from an owner that has been replaced
	OldSequence Ignored = "old_sequence" // repeated or late
	Watermark   Ignored = "watermark"    // the watermark went back
	BadRecord   Ignored = "bad_record"   // one record of a batch that is otherwise good
	Lag         Ignored = "lag"          // behind this pod's own usage
)

// AllIgnored lists the reasons.
func AllIgnored() []Ignored {
	return []Ignored{Malformed, Fingerprint, LogID, OldEpoch, OldSequence, Watermark, BadRecord, Lag}
}

// Update is a batch in the pod's own terms. Received of its header is on the pod's clock.
type Update struct {
	Header   quota.Header
	Appended quota.Millis
	Records  []Record
	Targets  []*wirev1.TargetHeader
	Wanted   []wirev1.ID
	Instance string
	// NewOwner: the first batch of an owner epoch.
	NewOwner bool
	// BadRecords is how many records were skipped as malformed.
	BadRecords int
}

// Partition is the state of one decisions partition: what has been heard last, under which log id.
// Not safe for concurrent use.
type Partition struct {
	fingerprint uint32
	logID       []byte
	heard       bool
	header      quota.Header
	first       placed // the epoch's first header heard
	delay       delay
	caughtUp    bool
}

// NewPartition returns a partition of which nothing has been heard. Headers must carry fingerprint,
// and logID once it is known; nil: the first header's.
func NewPartition(fingerprint uint32, logID []byte) *Partition {
	return &Partition{fingerprint: fingerprint, logID: bytes.Clone(logID)}
}

// Handle takes one batch. The reason is "" where the update is to be taken up: remembered in any case,
// applied to counters only if CaughtUp. A malformed batch changes nothing.
func (p *Partition) Handle(value []byte, appended quota.Millis, now quota.Time) (*Update, Ignored) {
	var batch wirev1.DecisionBatch
	if err := proto.Unmarshal(value, &batch); err != nil || batch.GetHeader() == nil {
		return nil, Malformed
	}
	wire := batch.GetHeader()
	header := decodeHeader(wire)
	if why := p.refuse(wire, &header); why != "" {
		return nil, why
	}
	if p.logID == nil {
		p.logID = bytes.Clone(wire.GetLogId())
	}
	p.delay.observe(appended, now)
	header.Received = p.delay.received(appended)
	u := &Update{
		Header: header, Appended: appended, Targets: wire.GetTargets(), Instance: wire.GetInstance(),
		NewOwner: !p.heard || header.Epoch != p.header.Epoch,
	}
	u.decode(&batch)
	if u.NewOwner {
		p.first = placed{header, appended}
	}
	p.heard, p.header = true, header
	return u, ""
}

// placed is a header with its append time.
type placed struct {
	header   quota.Header
	appended quota.Millis
}

func (p *Partition) refuse(wire *wirev1.Header, h *quota.Header) Ignored {
	switch {
	case wire.GetKeyFingerprint() != p.fingerprint:
		return Fingerprint
	case p.logID != nil && !bytes.Equal(wire.GetLogId(), p.logID):
		return LogID
	case !p.heard:
		return ""
	case h.Epoch < p.header.Epoch:
		return OldEpoch
	case h.Epoch == p.header.Epoch && h.Sequence <= p.header.Sequence:
		return OldSequence
	case h.Watermark < p.header.Watermark:
		return Watermark
	}
	return ""
}

func (u *Update) decode(batch *wirev1.DecisionBatch) {
	for _, r := range batch.GetRecords() {
		record, ok := decodeRecord(r)
		if !ok {
			u.BadRecords++
			continue
		}
		u.Records = append(u.Records, record)
	}
	for _, id := range batch.GetHeader().GetWanted() {
		u.Wanted = append(u.Wanted, wirev1.ID{Hi: id.GetHi(), Lo: id.GetLo()})
	}
}

// SetCaughtUp notes that everything up to the partition's end has been handled. What was heard before
// is not fresh by that: the next batch is.
func (p *Partition) SetCaughtUp() { p.caughtUp = true }

// CaughtUp reports whether batches apply to counters.
func (p *Partition) CaughtUp() bool { return p.caughtUp }

// Header returns the newest header heard; ok is false if there is none.
func (p *Partition) Header() (h quota.Header, ok bool) { return p.header, p.heard }

// First returns the first header heard of the present epoch, placed by the smallest delay now known.
func (p *Partition) First() quota.Header {
	h := p.first.header
	h.Received = p.delay.received(p.first.appended)
	return h
}

// Received is when a batch appended at that time would have been received with the smallest delay
// now known: better founded than what was known at its receipt.
func (p *Partition) Received(appended quota.Millis) quota.Time { return p.delay.received(appended) }

// LogID returns the log id that headers must carry; nil: not yet known.
func (p *Partition) LogID() []byte { return p.logID }

// SetLogID says that weir.usage is another topic now. It reports whether that is news: epochs, offsets and
// sequences start anew, and the caller drops pending offsets and records.
func (p *Partition) SetLogID(logID []byte) bool {
	if bytes.Equal(logID, p.logID) {
		return false
	}
	known := p.logID != nil
	p.logID = bytes.Clone(logID)
	p.heard, p.header, p.first = false, quota.Header{}, placed{}
	return known
}
