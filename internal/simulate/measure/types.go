package measure

import (
	"time"

	"github.com/weirproxy/weir/internal/quota"
)

// Answer is what a limiter said to a request, as one of the rates that apply to it sees it.
type Answer uint8

// The answers. A request that another enforced rate refused is not this one's demand.
const (
	Admitted Answer = iota
	Refused
	RefusedElsewhere
)

// Span is a time from From until before To.
type Span struct{ From, To time.Duration }

// Options of a run's measures.
type Options struct {
	// Start is the owner time at the run's start, for Calendar periods.
	Start quota.Millis
	// Steady is when under-admission begins to count, End the run's end.
	Steady, End time.Duration
	// Outages are the spans that the outage measures look at: a scenario's begin 0.3 s into a fault. Those that meet
	// are one.
	Outages []Span
	// Bins of the series for plots, at most; 0: 600. A bin is whole milliseconds.
	Bins int
}

// Series is a run's course in bins of equal length, units/s.
type Series struct {
	Bin                      time.Duration
	Limit                    []float64 // what the rate allows the counters seen so far, units/s
	Offered, Admitted, Exact []float64
	// Window is the fullest content of any counter's true window in the bin over its limit (bucket: spent over burst).
	Window []float64
}

// Values are the measures of one rate, or their mean over runs; see the scenario format. Fields that do not apply
// are NaN (no outage, nothing offered).
type Values struct {
	Over, Under             float64 // percent
	OutageOver, OutageUnder float64 // percent
	EnforceMillis           float64 // 0: never full
	FalseDenials            float64 // percent
	Offered, Admitted       float64 // units
	Jain                    float64
	ExactMean, AdmittedMean float64 // mean window content in the steady part, units
}

// Rate is one rate of one limit in one run, over all its counters: Over, OutageOver and EnforceMillis are those of the
// worst counter, the others of all together (Under: of the sum of their windows).
type Rate struct {
	Limit, Title string // the limit's name; the rate as a person writes it
	Values
	Counters int
	Series   *Series // of all counters together
}

// Source is what became of the requests of one source of traffic: how many came, were refused, and would have been by
// an exact limiter of all rates on the same requests.
type Source struct {
	Name                           string
	Offered, Refused, ExactRefused uint64
}

// Run is one run.
type Run struct {
	Seed     uint64
	Rates    []Rate
	Sources  []Source
	Requests uint64
	// Messages a second, over the run.
	UsageMessages, UsageEntries, DecisionRecords, DecisionBatches float64
}
