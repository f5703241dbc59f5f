package ledger

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"

	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/internal/quota"
)

// Defaults of Config.
const (
	DefaultSlots    = 50_000
	DefaultReserve  = 1_024
	DefaultIdentity = 16 << 20

	// identityRoom is what each slot brings of DefaultIdentity.
	identityRoom  = DefaultIdentity / DefaultSlots
	leastIdentity = 64 << 10

	segmentCells = 256
)

// Config bounds a Ledger. A slot costs sizeof(quota.Cell) and about 0.45 KiB of control state, 0.15 KiB more with
// a decision; identities are bounded apart, since a request chooses their length.
type Config struct {
	// Slots is the most counters held, overflow counters apart; 0: DefaultSlots.
	Slots int
	// Reserve is how many overflow counters there may be besides; 0: DefaultReserve.
	Reserve int
	// IdentityBytes bounds what the identities take together, of which counters of one limit share the beginning; 0:
	// DefaultIdentity, or less in the measure of Slots.
	IdentityBytes int
	// Prepare, if set, makes a new slot's Counter ready before any check can find it. It runs on the
	// check's goroutine and must not block or call the ledger.
	Prepare func(*Slot)
	// Cells gives memory for n cells, which the ledger never gives back; nil: NewCells.
	Cells func(n int) []quota.Cell
}

// Ledger is the pod's slots. Pin, Lookup, Make, MarkDirty and MarkUrgent are safe for concurrent use; all other
// methods belong to the control goroutine.
type Ledger struct {
	config Config
	table  *table
	pins   pins
	dirty  atomic.Pointer[Slot]
	wake   chan struct{}
	urgent chan struct{}

	full atomic.Uint64

	alloc arena

	// The control goroutine's.
	live    []*Slot
	limbo   []*Slot // removed since the last flip
	waiting []*Slot // removed before it
	graced  []*Slot // out of every check's reach, to be freed once clean
}

// arena gives out cells. mu is held for a few instructions, once a counter's life.
type arena struct {
	mu       sync.Mutex
	segments [][]quota.Cell
	free     []uint32
	fresh    []*Slot // made and not yet taken by the control goroutine
	families families
	used     int
	reserved int
	bytes    int
	made     uint64
}

// New returns an empty ledger.
func New(c Config) *Ledger {
	if c.Slots <= 0 {
		c.Slots = DefaultSlots
	}
	if c.Reserve <= 0 {
		c.Reserve = DefaultReserve
	}
	if c.IdentityBytes <= 0 {
		c.IdentityBytes = min(DefaultIdentity, max(c.Slots*identityRoom, leastIdentity))
	}
	if c.Cells == nil {
		c.Cells = NewCells
	}
	return &Ledger{
		config: c,
		table:  newTable([2]uint64{rand.Uint64(), rand.Uint64()}),
		wake:   make(chan struct{}, 1),
		urgent: make(chan struct{}, 1),
		alloc:  arena{families: families{}},
	}
}

// Pin begins a check's hold: slots found from now on keep their cells until Unpin. Hint spreads
// concurrent checks; any number will do. It does not allocate.
func (l *Ledger) Pin(hint uint32) Pin { return l.pins.pin(hint) }

// Lookup returns the slot of a counter, or nil. The caller holds a Pin. It does not allocate.
func (l *Ledger) Lookup(id wirev1.ID) *Slot { return l.table.lookup(id) }

// Make returns the slot of a counter, new if there was none, or nil where the ledger is full. The
// caller holds a Pin.
func (l *Ledger) Make(k Key) *Slot {
	sh := l.table.shard(k.ID)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if s := l.table.lookup(k.ID); s != nil {
		return s
	}
	s := l.alloc.take(&l.config, &k)
	if s == nil {
		l.full.Add(1)
		return nil
	}
	if l.config.Prepare != nil {
		l.config.Prepare(s)
	}
	l.table.insert(sh, s)
	l.alloc.publish(s)
	return s
}

// Full is how often Make found no room.
func (l *Ledger) Full() uint64 { return l.full.Load() }

// Size returns the slots in use, overflow counters included, and the bytes of their identities.
// Safe for concurrent use.
func (l *Ledger) Size() (slots, identityBytes int) {
	l.alloc.mu.Lock()
	defer l.alloc.mu.Unlock()
	return l.alloc.used + l.alloc.reserved, l.alloc.bytes
}

// Capacity is the most slots held, overflow counters apart.
func (l *Ledger) Capacity() int { return l.config.Slots }

func (a *arena) take(c *Config, k *Key) *Slot {
	a.mu.Lock()
	defer a.mu.Unlock()
	if k.Overflow && a.reserved >= c.Reserve || !k.Overflow && a.used >= c.Slots {
		return nil
	}
	bytes := a.families.costs(k)
	switch {
	case k.Overflow:
		a.reserved++
	case a.bytes+bytes > c.IdentityBytes:
		return nil
	default:
		a.used++
	}
	a.bytes += bytes
	a.made++
	cell := a.cell(c)
	fam, shared := a.families.join(k)
	return &Slot{
		ID: k.ID, family: fam, Cell: a.at(cell), Made: a.made, cell: cell,
		shared: uint16(shared), tail: string(k.Identity[shared:]), //nolint:gosec // at most MaxUint16
	}
}

func (a *arena) cell(c *Config) uint32 {
	if n := len(a.free); n > 0 {
		cell := a.free[n-1]
		a.free = a.free[:n-1]
		return cell
	}
	base := uint32(len(a.segments)) * segmentCells //nolint:gosec // bounded by Config.Slots
	a.segments = append(a.segments, c.Cells(segmentCells))
	for i := uint32(segmentCells - 1); i > 0; i-- {
		a.free = append(a.free, base+i)
	}
	return base
}

func (a *arena) at(cell uint32) *quota.Cell {
	return &a.segments[cell/segmentCells][cell%segmentCells]
}

func (a *arena) publish(s *Slot) {
	a.mu.Lock()
	a.fresh = append(a.fresh, s)
	a.mu.Unlock()
}

func (a *arena) release(s *Slot) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.free = append(a.free, s.cell)
	a.bytes -= a.families.leave(s)
	if s.Overflow {
		a.reserved--
	} else {
		a.used--
	}
}
