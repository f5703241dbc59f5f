package leases

import (
	"math"
	"time"
)

// Time is one process's monotonic time, ns since an arbitrary start.
type Time int64

// Hold says how long an owner counts granted units that it hears nothing of.
type Hold int

const (
	// UntilVoid is until the lease is over. From then on only what was reported counts, for a window from its
	// report. The pod's lease runs from receipt, shorter by Rules.Jitter. This is the sketch of ALGORITHM 3.5.
	UntilVoid Hold = iota
	// UntilWindow is until the last unit that the lease allowed has left every window.
	UntilWindow
	// UntilSettled is until the pod says what became of them, or is proven dead.
	UntilSettled
)

func (h Hold) String() string { return [...]string{"Void", "Charged", "Held"}[h] }

// Omission is a rule left out, to see that it is needed. Omissions are or-ed.
type Omission int

const (
	// FromReceipt has a lease run from the receipt of its grant, not from the report that the grant answers.
	FromReceipt Omission = 1 << iota
	// ClockFirst has a check read the clock before it has a lease in hand.
	ClockFirst
	// LooseTake has a check take from a lease that was told as closed in the meantime.
	LooseTake
	// Repeats has a pod take a batch in that comes again.
	Repeats
	// NoFence has pods take batches of an older owner after a newer one's.
	NoFence
	// Forgetful has a new owner count reported units and wait a lease out, without what the old one granted.
	Forgetful
	// StaleClock has the owner go by a clock that it read before it read the log.
	StaleClock
	// NoDrift has the owner trust all clocks to run alike.
	NoDrift
	// NoStampError has a new owner trust all brokers' clocks to agree.
	NoStampError
	// InFlight has a pod tell a lease as closed, and its units as used, while answers are still to leave.
	InFlight
)

// Rules are what pods and owner agree on.
type Rules struct {
	Limit  int // M, units
	Window time.Duration
	Lease  time.Duration // on the pod's clock
	Jitter time.Duration // UntilVoid only
	Hold   Hold
	// Drift bounds every clock's rate: within 1 ± Drift of real time.
	Drift float64
	// StampError bounds the difference of two brokers' clocks.
	StampError time.Duration
	Omit       Omission
}

func (r *Rules) omits(o Omission) bool { return r.Omit&o != 0 }

func (r *Rules) drift() float64 {
	if r.omits(NoDrift) {
		return 0
	}
	return r.Drift
}

// own is how long an owner must count on its own clock for d of real time to have passed, when at least aged of it has.
func (r *Rules) own(d, aged time.Duration) time.Duration {
	return time.Duration(math.Ceil(float64(d-aged) * (1 + r.drift())))
}

// leaseReal is the longest that a lease can run after its grant, real time.
func (r *Rules) leaseReal() time.Duration {
	return time.Duration(math.Ceil(float64(r.Lease) / (1 - r.drift())))
}

// ceiling is how long the owner counts an unsettled grant; ends is false if only a settlement ends it.
func (r *Rules) ceiling(aged time.Duration) (d time.Duration, ends bool) {
	switch r.Hold {
	case UntilVoid:
		return max(r.Lease-aged, 0), true
	case UntilWindow:
		return max(r.own(r.leaseReal()+r.Window, aged), 0), true
	}
	return 0, false
}

// tail is how long the owner counts units that were used before something of age aged was sent.
func (r *Rules) tail(aged time.Duration) time.Duration { return max(r.own(r.Window, aged), 0) }

// believed is how much of a difference between two brokers' stamps is sure.
func (r *Rules) believed(d time.Duration) time.Duration {
	if !r.omits(NoStampError) {
		d -= r.StampError
	}
	return max(d, 0)
}
