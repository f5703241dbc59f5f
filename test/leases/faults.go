package leases

import "time"

// Stage is a place in a check at which it can be stopped: before it does what the stage is named after.
type Stage int

// The stages, in a check's order.
const (
	Picking   Stage = iota // has nothing yet
	Reading                // has a lease in hand
	Taking                 // has read the clock and found the lease valid
	Answering              // has taken a unit; its answer is still to leave
	Anywhere               // of Stop: no check need be under way
)

// Stop stops a pod, or one check of it, when it first reaches a stage after From. A stopped pod's clock goes on.
type Stop struct {
	Pod       int
	From, For time.Duration
	Stage     Stage
	Process   bool // all of the pod; else the one check
}

// Crash ends a pod's process. It starts anew after Back, or never if that is negative.
type Crash struct {
	Pod      int
	At, Back time.Duration
}

// Cut cuts a pod off: its reports are lost, decisions reach it afterwards.
type Cut struct {
	Pod       int
	From, For time.Duration
}

// Move gives the counter to a new owner, which grants after Gap. The old one does not meet the claim for Zombie.
type Move struct {
	At, Gap, Zombie time.Duration
}

// OwnerStage is a place in an owner's round at which it can be stopped.
type OwnerStage int

// The stages, in a round's order.
const (
	Idle    OwnerStage = iota // before a tick
	Timed                     // has read the clock, and is still to read the log
	Granted                   // has granted, and is still to append
)

// OwnerStop stops the owner when it first reaches a stage after From.
type OwnerStop struct {
	From, For time.Duration
	Stage     OwnerStage
}

// Faults of one run; the zero value has none.
type Faults struct {
	Stops      []Stop
	Crashes    []Crash
	Cuts       []Cut
	Moves      []Move
	OwnerStops []OwnerStop
	// Parts of the messages: reports lost, reports in the log of which the pod is told otherwise, reports appended twice,
	// batches delivered again, the last two up to Late later.
	Loss, AckLoss, Duplicate, Redeliver float64
	Late                                time.Duration
	// Clocks: rates are within 1 ± Clocks of real time. Stamps: brokers' clocks differ by up to that.
	Clocks float64
	Stamps time.Duration
}
