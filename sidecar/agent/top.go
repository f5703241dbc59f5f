package agent

import (
	"container/heap"
	"slices"

	"github.com/weirproxy/weir/sidecar/ledger"
)

// topCounters keeps the n slots with the most offered units, so that a look at a full ledger costs no
// copy of it.
type topCounters struct {
	n, seen int
	slots   []ranked
}

type ranked struct {
	slot    *ledger.Slot
	offered uint64
}

func (t *topCounters) add(s *ledger.Slot) {
	t.seen++
	r := ranked{s, s.Cell.Offered()}
	if len(t.slots) < t.n {
		heap.Push(t, r)
	} else if t.n > 0 && r.offered > t.slots[0].offered {
		t.slots[0] = r
		heap.Fix(t, 0)
	}
}

// sorted returns them, the most offered first.
func (t *topCounters) sorted() []*ledger.Slot {
	slices.SortFunc(t.slots, func(a, b ranked) int {
		switch {
		case a.offered > b.offered:
			return -1
		case a.offered < b.offered:
			return 1
		}
		return 0
	})
	out := make([]*ledger.Slot, len(t.slots))
	for i, r := range t.slots {
		out[i] = r.slot
	}
	return out
}

// The heap has the least on top.
func (t *topCounters) Len() int           { return len(t.slots) }
func (t *topCounters) Less(i, j int) bool { return t.slots[i].offered < t.slots[j].offered }
func (t *topCounters) Swap(i, j int)      { t.slots[i], t.slots[j] = t.slots[j], t.slots[i] }

// Push implements heap.Interface.
func (t *topCounters) Push(x any) { t.slots = append(t.slots, x.(ranked)) }

// Pop implements heap.Interface.
func (t *topCounters) Pop() any {
	last := t.slots[len(t.slots)-1]
	t.slots = t.slots[:len(t.slots)-1]
	return last
}
