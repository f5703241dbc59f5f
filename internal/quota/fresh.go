package quota

import (
	"sync/atomic"
	"time"
)

// Fresh is what checks need of one decisions partition: how old its newest header is. The control
// goroutine alone writes it; any goroutine reads it. The zero value has heard nothing and is ready.
type Fresh struct {
	received atomic.Int64 // Time of the newest header plus 1; 0: none
	renewed  atomic.Int64 // Time of the newest header that renews records
	since    atomic.Int64 // Time of the epoch's first header: older records are not renewed
	offset   atomic.Int64 // owner time - pod time, ns; 0: unknown

	spares spares                 // of views of this partition's counters
	shared atomic.Pointer[Header] // the newest batch's of which a record was applied

	// Of the control goroutine alone.
	newest, renewing Header
	lead             time.Duration
}

// share returns an immutable copy of h, the same one for the records of a batch. Those who make slots may call it too.
func (f *Fresh) share(h Header) *Header {
	if s := f.shared.Load(); s != nil && *s == h {
		return s
	}
	f.shared.Store(&h)
	return &h
}

// Observe takes the newest header in. Call it before the batch's records are applied and before Include:
// in between, checks count too much as not included, never too little. Headers must come in order;
// the feed drops those whose watermark, epoch or sequence goes back.
func (f *Fresh) Observe(h Header) {
	if f.received.Load() == 0 || h.Epoch != f.newest.Epoch {
		f.since.Store(int64(h.Received))
		f.renewing = Header{}
	}
	f.newest = h
	if h.OwnerTime != 0 {
		f.offset.Store(int64(h.OwnerTime)*int64(time.Millisecond) - int64(h.Received))
	}
	if !h.Deferred {
		f.renewing = h
		f.renewed.Store(int64(h.Received))
	}
	f.received.Store(int64(h.Received) + 1)
}

// Reset forgets all, as after a change of the log id.
func (f *Fresh) Reset() {
	f.received.Store(0)
	f.renewed.Store(0)
	f.since.Store(0)
	f.newest, f.renewing = Header{}, Header{}
}

// SetLead sets delta0 of ALGORITHM 3.6: half of the smallest produce-to-acknowledgement time of the
// last 60 s, at most 8 ms, 0 when unknown. It takes effect with each counter's next decision. For the control
// goroutine.
func (f *Fresh) SetLead(d time.Duration) { f.lead = min(max(d, 0), 8*time.Millisecond) }

// Newest is the header observed last; ok is false if there is none. For the control goroutine.
func (f *Fresh) Newest() (h Header, ok bool) { return f.newest, f.received.Load() != 0 }

// Age is the time since the newest header; ok is false if there is none.
func (f *Fresh) Age(now Time) (age time.Duration, ok bool) {
	r := f.received.Load()
	return time.Duration(int64(now) - (r - 1)), r != 0
}

// OwnerTime is the pod's civil time: the newest header's owner time plus the monotonic time since.
// ok is false while no header has come.
func (f *Fresh) OwnerTime(now Time) (t Millis, ok bool) {
	o := f.offset.Load()
	return Millis((int64(now) + o) / int64(time.Millisecond)), o != 0
}

// podTime is the inverse of OwnerTime; 0 if unknown.
func (f *Fresh) podTime(t Millis) Time {
	o := f.offset.Load()
	if o == 0 {
		return 0
	}
	return Time(int64(t)*int64(time.Millisecond) - o)
}

// Fleet is a target's number of live pods, n. One writer; any goroutine reads it. The zero value does
// not know, and counts as one pod.
type Fleet struct{ pods atomic.Int64 }

// Set notes n live pods; 0 or less: not known.
func (f *Fleet) Set(n int) { f.pods.Store(int64(n)) }

// Pods is n, at least 1, and whether it is known.
func (f *Fleet) Pods() (n int, known bool) {
	p := f.pods.Load()
	return int(max(p, 1)), p > 0
}
