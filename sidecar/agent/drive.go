package agent

import (
	"time"

	"github.com/weirproxy/weir/internal/bus"
	"github.com/weirproxy/weir/sidecar/ledger"
)

// Sender hands records to the log without waiting; bus.Writer says what its Send promises. done may be called during
// Send or later.
type Sender interface {
	Send(topic string, partition int32, key, value []byte, done func(bus.Ack)) error
}

// Driver runs an agent whose time, log and events are the caller's, as `weir simulate` does: the same control code as
// Run, without its goroutines and without Kafka. All methods, and the calls of done, are for one goroutine; Config.Clock
// must be set. The agent must not be Run.
type Driver struct{ a *Agent }

// Drive makes the caller the agent's control goroutine. Records go to s.
func (a *Agent) Drive(s Sender) *Driver {
	a.pieces.whole = true
	a.Restore()
	a.link = &link{sends: s, kick: make(chan struct{}, 1)}
	return &Driver{a}
}

// Policy takes up one record of the policy topic; a nil value is a tombstone.
func (d *Driver) Policy(key string, offset int64, value []byte) { d.a.policyRecord(key, offset, value) }

// PoliciesRead says that the policy topic has been read to its end.
func (d *Driver) PoliciesRead() { d.a.policiesRead() }

// UsageTopic says which topic weir.usage is.
func (d *Driver) UsageTopic(id bus.TopicID) { d.a.setLogID(logIDOf(id)) }

// Decisions takes up one record of a partition of weir.decisions.
func (d *Driver) Decisions(partition int32, value []byte, appended time.Time) {
	if h := d.a.hearings[partition]; h != nil {
		d.a.batch(h, bus.Message{Value: value, Appended: appended}, d.a.now())
	}
}

// CaughtUp says that a partition of weir.decisions has been read to its end.
func (d *Driver) CaughtUp(partition int32) {
	if h := d.a.hearings[partition]; h != nil {
		h.feed.SetCaughtUp()
	}
}

// Roused says that a check asks for a Step before the time that the last one returned.
func (d *Driver) Roused() bool { return len(d.a.ledger.Wake()) > 0 || len(d.a.urgent()) > 0 }

// Step does what is due, and returns after how long to call it again at the latest.
func (d *Driver) Step() time.Duration {
	select {
	case <-d.a.ledger.Wake():
	default:
	}
	select {
	case <-d.a.urgent():
		d.a.pace.urgent = true
	default:
	}
	return d.a.step()
}

// Drain hands over what is not yet reported, as at the end of Run, and returns whether nothing is left, acknowledgements
// included. Call it until it is so; then Leave.
func (d *Driver) Drain() (done bool) {
	d.a.takePending()
	d.a.installIfChanged()
	d.a.flush(d.a.now(), true)
	return d.a.unreported() == 0
}

// Leave writes the pod's tombstone.
func (d *Driver) Leave() { d.a.sendStatusRecord(nil, func(bus.Ack) {}) }

// Slots are the live slots of the pod's counters. The slice is valid until the next Step.
func (d *Driver) Slots() []*ledger.Slot {
	d.a.takeMade(d.a.now())
	return d.a.ledger.Live()
}
