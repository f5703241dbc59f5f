package ledger

import (
	"sync/atomic"

	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/internal/quota"
)

// Key is what a slot is made from. It is immutable.
type Key struct {
	ID wirev1.ID
	// Identity is the counter's canonical encoding; the ledger keeps a copy of its own.
	Identity []byte
	// Limit, "policy namespace/policy name/limit", and Target are for people and for placement.
	Limit  string
	Target string
	// Partition of the usage and decisions topics.
	Partition int32
	// Overflow: a limit's overflow counter, which may use the ledger's reserve.
	Overflow bool

	// Rule, Fresh and Fleet are what the counter begins with. Rule may be another one later.
	Rule  *quota.Rule
	Fresh *quota.Fresh
	Fleet *quota.Fleet
}

// Slot is one given-out slot: a counter of this pod. All but Control does not change until it is freed. Checks touch
// the Cell, while they hold a Pin, and MarkDirty; everything under Control belongs to the
// control goroutine.
type Slot struct {
	ID wirev1.ID
	*family
	// Cell holds the counter's hot words. It belongs to another counter once this slot is freed.
	Cell *quota.Cell
	// Made is the pod's running number of slots given out, from 1.
	Made uint64

	next   *Slot // the dirty stack: the marker's until pushed, the control goroutine's afterwards
	tail   string
	shared uint16 // bytes of the identity that are the family's; the rest is tail
	cell   uint32
	marked atomic.Bool

	Control
}

// Control is a slot's state on the control goroutine (before it is published, its maker's).
type Control struct {
	// Counter is the control side of the Cell.
	Counter *quota.Counter
	// ReportedAt is when an entry of this counter was last handed to the producer.
	ReportedAt quota.Time
	// Acknowledged: a report with this counter's identity text has been acknowledged, in the owner
	// epoch IdentityEpoch. Wanted: the owner asks for the text.
	IdentityEpoch int64
	Acknowledged  bool
	Wanted        bool
	// Listed: the report builder holds the slot in a partition's list of dirty ones.
	Listed bool

	removed bool
	freed   bool
	live    uint32 // position in the list of live slots, from 1; 0: not live
}

// Freed reports whether the Cell has been given back: Counter and identity are gone. For the control
// goroutine.
func (s *Slot) Freed() bool { return s.freed }
