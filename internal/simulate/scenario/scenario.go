package scenario

import (
	"time"

	"github.com/weirproxy/weir/api/v1alpha1"
)

// Scenario is one file, checked, with every default in place.
type Scenario struct {
	Name, Title string
	// Pods of the target at the start.
	Pods int
	// Policy is the quota in force. Where the file names one rate, it is a policy of one limit without
	// dimensions, and Single is set.
	Policy *v1alpha1.QuotaPolicySpec
	Single bool

	Duration   time.Duration
	SteadyFrom time.Duration
	Runs       int
	Seed       uint64

	Traffic  []Source
	Arrivals Arrivals
	Network  Network
	Timing   Timing
	Faults   []Fault
	// Reference is nil where the file has none.
	Reference *Reference
}

// Arrivals of requests in a source.
type Arrivals string

// The kinds of arrivals.
const (
	Poisson Arrivals = "Poisson"
	Uniform Arrivals = "Uniform"
)

// Source is one stream of requests.
type Source struct {
	// Pods that it arrives at, with the Weights (of the same length, not all 0) of each. `all` is every pod that there is
	// at any time, 0 to MaxPods-1; what is for one that does not run at the moment arrives at another. Of a source with a
	// Hop all requests arrive at one of Pods, the next one after each Hop.
	Pods    []int     `json:"pods" write:"always"`
	Weights []float64 `json:"weights"`
	// Skew is the Zipf exponent that Weights were made with; 0 also where the file gives them.
	Skew float64       `json:"skew"`
	Hop  time.Duration `json:"hop"`
	// Rate is a step function of time, requests/s of the whole source, starting again after Repeat (0: never). It
	// is sorted and begins at 0.
	Rate   []Step        `json:"requestsPerSecond"`
	Repeat time.Duration `json:"repeat"`
	// Batch is how many requests arrive together on one pod; 1 at least.
	Batch int `json:"batch"`

	// What the requests are. Client is the value of the policy's first source of clients, "" for none; with Clients above
	// 0 there are that many of them, as ClientName says, drawn with the Zipf exponent ClientSkew for each request (or batch).
	Client     string            `json:"client"`
	Clients    int               `json:"clients"`
	ClientSkew float64           `json:"clientSkew"`
	Method     string            `json:"method"`  // "": GET
	Path       string            `json:"path"`    // "": /
	Headers    map[string]string `json:"headers"` // names in lower case
	// Cost, units, where the policy reads the cost from a header; 0: none is sent.
	Cost uint64 `json:"cost"`
	// Priority is kept for policies that will know it.
	Priority string `json:"priority"`
}

// Step is a rate, requests/s, from a time on.
type Step struct {
	At    time.Duration `json:"at" write:"always"`
	Value float64       `json:"value" write:"always"`
}

// Delay is uniform in [Min, Max].
type Delay struct {
	Min time.Duration `json:"min"`
	Max time.Duration `json:"max"`
}

// Network is what messages take. Uplink is from a pod's flush until its owner reads it, half of it until the log
// has it; Downlink from an owner's tick until a pod applies it. Tail adds uniformly 0..TailMax to a part of them.
// Ack is the way of an acknowledgement from the log back to the pod; nil: as long as that report took to the log.
type Network struct {
	Uplink, Downlink Delay
	Ack              *Delay
	TailProbability  float64
	TailMax          time.Duration
}

// Timing of the fleet. StaleAfter and FallbackFloor are what Policy.Failure says: Parse carries the file's over where the
// policy says nothing. MaxBytes and MaxBatches a second are the budget of a decisions partition; 0: the program's
// defaults.
type Timing struct {
	Flush         time.Duration `json:"flush"`
	Tick          time.Duration `json:"tick"`
	IdleTick      time.Duration `json:"idleTick"`
	StaleAfter    time.Duration `json:"staleAfter"`
	FallbackFloor float64       `json:"fallbackFloor"`
	MaxBytes      float64       `json:"maxBytes"`
	MaxBatches    float64       `json:"maxBatches"`
	// MaxCounters bounds a pod's counters; 0: the program's default.
	MaxCounters int `json:"maxCounters"`
}

// Kind of a fault.
type Kind string

// The faults.
const (
	AggregatorDown Kind = "AggregatorDown" // At, For
	StoreDown      Kind = "StoreDown"      // At, For
	BrokerDown     Kind = "BrokerDown"     // At, For: nothing is appended or read
	UsageLoss      Kind = "UsageLoss"      // Probability: a report is not appended, and its pod told so
	UsageDuplicate Kind = "UsageDuplicate" // Probability: a report is appended twice
	AckLoss        Kind = "AckLoss"        // Probability: a report is appended, and its pod told that it was not
	DecisionLoss   Kind = "DecisionLoss"   // Probability, for each pod
	PodRestart     Kind = "PodRestart"     // Every, Graceful; one pod after another
	OwnerMoves     Kind = "OwnerMoves"     // At, Old, For
	StoreLoses     Kind = "StoreLoses"     // At, Last: what was written in the Last before At; 0: everything
	TopicMadeAnew  Kind = "TopicMadeAnew"  // At: weir.usage is another topic, and empty
	LimitChange    Kind = "LimitChange"    // At, Limit (and LimitName, where the policy has several)
	PodsChange     Kind = "PodsChange"     // At, Pods
	PodsBelieved   Kind = "PodsBelieved"   // At, Pods: the owner believes in that many live pods from then on; 0: the truth again
)

// OldOwner is what becomes of the owner that a partition moves away from.
type OldOwner string

// The ways an owner loses its partition.
const (
	OldLeaves OldOwner = "Leaves" // hands over cleanly (default)
	OldDies   OldOwner = "Dies"   // at once; the new one starts For later
	OldStalls OldOwner = "Stalls" // it hears and does nothing for For, and then goes on as if nothing had been; the new one starts at At
)

// Fault is one kind of trouble; Kind says which of the other fields count. LimitName is always filled for a LimitChange; it
// changes the limit's first rate.
type Fault struct {
	Kind        Kind          `json:"kind"`
	At          time.Duration `json:"at"`
	For         time.Duration `json:"for"`
	Every       time.Duration `json:"every"`
	Last        time.Duration `json:"last"`
	Probability float64       `json:"probability"`
	Graceful    bool          `json:"graceful"`
	Limit       float64       `json:"limit"`
	LimitName   string        `json:"limitName"`
	Pods        int           `json:"pods"`
	Old         OldOwner      `json:"old"`
}

// Reference is what the run set is held against, percent; nil: not given.
type Reference struct {
	OverPercent        *float64 `json:"overPercent"`
	OverSd             *float64 `json:"overSd"`
	UnderPercent       *float64 `json:"underPercent"`
	UnderSd            *float64 `json:"underSd"`
	OutageOverPercent  *float64 `json:"outageOverPercent"`
	OutageUnderPercent *float64 `json:"outageUnderPercent"`
}

// MaxPods is how many pods there are at most at any time, with what PodsChange faults bring.
func (s *Scenario) MaxPods() int { return maxPods(s.Pods, s.Faults) }

func maxPods(pods int, faults []Fault) int {
	for i := range faults {
		if faults[i].Kind == PodsChange {
			pods = max(pods, faults[i].Pods)
		}
	}
	return pods
}
