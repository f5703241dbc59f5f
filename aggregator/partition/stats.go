package partition

// Stats counts what happened since the partition was claimed; all only grow.
type Stats struct {
	Messages, Entries uint64
	// Units counted.
	Units float64
	// Skipped, by reason.
	Fingerprint, Malformed, Foreign, Implausible, UnknownPolicy, NoIdentity, TooManyPods, NoRoom uint64
	// StaleLogID are reports that name an older log; they count all the same.
	StaleLogID uint64
	// Jumps are append times too far ahead of monotonic time.
	Jumps uint64
	// Batches, Records and DeferredBatches (some records did not fit the budget).
	Batches, Records, DeferredBatches uint64
	// Flushes, FlushedCounters, FlushErrors, Losses (of the store) and Loads of counters.
	Flushes, FlushedCounters, FlushErrors, Losses, Loads uint64
	// Folded are entries charged to an overflow counter at a full target.
	Folded uint64
	// Included, of headers that include new reports: how long before, owner time, the oldest of those was appended.
	Included Lags
}

// Gauges say how things are.
type Gauges struct {
	Live      bool // the claim was read back
	Watermark int64
	// Stored is the offset up to which all is in the store; −1: nothing yet.
	Stored                                  int64
	OwnerTime                               int64
	Counters, Hot, Waiting, Loading, Dirty  int
	Targets, Overflowing, Pods, WantedTexts int
	StoreAway                               bool
}
