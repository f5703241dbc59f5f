package leases

// GrantID orders grants: by owner epoch, then by its batch.
type GrantID struct{ Epoch, Batch uint64 }

func (a GrantID) after(b GrantID) bool {
	return a.Epoch > b.Epoch || a.Epoch == b.Epoch && a.Batch > b.Batch
}

// Report is what a pod sends each flush: all that it has not heard to be in the log.
type Report struct {
	Pod    int
	Run    uint64 // the pod's epoch; every incarnation has its own
	Number uint64 // of the run, from 1
	Demand float64
	Leases []Progress
	// Ended: runs of this pod before Run are proven dead.
	Ended bool
}

// Progress of one lease. Used never decreases; after Closed nothing more is used.
type Progress struct {
	ID     GrantID
	Used   int
	Closed bool
}

// Grant is one pod's part of a batch.
type Grant struct {
	Pod   int
	Run   uint64
	Units int
	// Anchor is the number of the pod's report that the grant answers: the lease runs from its sending.
	Anchor uint64
}

// Batch is one tick's grants, or a new owner's first header if it has none.
type Batch struct {
	ID     GrantID
	Grants []Grant
}
