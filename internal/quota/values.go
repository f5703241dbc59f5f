package quota

import "time"

// Time is a pod's monotonic time, ns since an arbitrary start. No wall clock enters it.
type Time int64

// Millis is owner time or broker append time, Unix ms.
type Millis int64

// Algorithm of a rate.
type Algorithm uint8

// The algorithms, numbered as on the wire. The zero value is none of them.
const (
	SlidingWindow Algorithm = 1
	TokenBucket   Algorithm = 2
	Calendar      Algorithm = 3
)

// Period of a Calendar rate, numbered as on the wire.
type Period uint8

// The civil periods; a week begins on Monday.
const (
	NoPeriod Period = 0
	Hour     Period = 1
	Day      Period = 2
	Week     Period = 3
	Month    Period = 4
	Year     Period = 5
)

// Overcommit says what a pod may take beyond its share while there is slack (ALGORITHM 8).
type Overcommit uint8

// The kinds of overcommit; the zero value is the default.
const (
	OvercommitLearned Overcommit = iota
	OvercommitFixed              // Rule.OvercommitPart of X
	OvercommitNone
)

// FailureMode says what a pod does with a counter when no header is fresh.
type FailureMode uint8

// The failure modes; the zero value is the default.
const (
	FailLocalShare FailureMode = iota
	FailAllow
	FailDeny
)

// Rule is the amount in force for one counter: what its policy, or the override that applies to
// it, says. A Rule is immutable once given to a Cell, Counter or Total, and safe for concurrent use.
type Rule struct {
	Algorithm Algorithm
	// Limit is units per Window (Calendar: per Period).
	Limit float64
	// Window: SlidingWindow at least 1 s; TokenBucket any positive; 0 for Calendar.
	Window time.Duration
	// Burst is a token bucket's capacity, units; 0 for the others.
	Burst float64
	// Period and Location: Calendar only.
	Period   Period
	Location *time.Location

	Strict         bool
	Overcommit     Overcommit
	OvercommitPart float64
	Failure        FailureMode
	// StaleAfter: headers older than this are no longer trusted. Floor: ALGORITHM 3.4.
	StaleAfter time.Duration
	Floor      float64
	// PolicyVersion is the policy's offset in weir.policies.
	PolicyVersion int64
}

// Header is what a pod keeps of a DecisionBatch's header.
type Header struct {
	Epoch     int64
	Sequence  uint64
	Watermark int64
	OwnerTime Millis
	Flush     time.Duration
	Tick      time.Duration
	Deferred  bool // renews no record
	// Received is the pod's time of receipt less the excess delay of DESIGN 3.
	Received Time
}

// Record is a decision on one counter; the fields are those of wire/v1.Record.
type Record struct {
	PolicyVersion int64
	Amount, Rate  float64 // M, lr
	Remaining     float64 // R
	Expire1       float64 // E1
	Expire2       float64 // E2
	Content       float64 // S
	Demand        float64 // D, requests/s
	MeanCost      float64 // units a request; never 0
	ShareSum      float64 // Gsum
	Epsilon       float64
	Level         float64 // L; +Inf if absent
	Grant         float64 // G, units/s
	Burst         float64
	Paced         bool
	BlockedFor    time.Duration // from the header's owner time; 0: not blocked
	ResetIn       time.Duration // Calendar, from the header's owner time
}

// Entry is what a pod reports of one counter; wire/v1.UsageEntry says what the fields mean.
type Entry struct {
	Made, Cumulative, Base, Offered uint64
	Demand, MeanCost, Burst         float64
	Span, Age                       time.Duration
}
