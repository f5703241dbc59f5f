package agent

import (
	"context"
	"time"

	"github.com/weirproxy/weir/internal/bus"
	"github.com/weirproxy/weir/internal/quota"
	"github.com/weirproxy/weir/sidecar/ledger"
)

// Work of the control goroutine that grows with the number of policies or counters is done in pieces, and between
// two of them it sleeps: on one processor a check that arrives meanwhile would else wait until the whole is done, since
// Go looks for what has arrived only when nothing can run, or each 10 ms.
const (
	// recordsAtOnce and slotsAtOnce are a piece, some 0.5 ms each.
	recordsAtOnce = 16
	slotsAtOnce   = 512
	// rest is between two pieces.
	rest = 500 * time.Microsecond
	// installGap is between two snapshots: a burst of changes is one or a few, not one a record.
	installGap = 50 * time.Millisecond
)

// pieces is what is left of such work. The control goroutine's.
type pieces struct {
	backlog []backlog
	unfit   int // of the live slots, so many from the first have not been put under the newest rules
	// installedAt is when the last snapshot was made; 0: never.
	installedAt quota.Time
	// whole: everything at once and without gaps, for callers whose time is not the machine's.
	whole bool
}

// backlog is the records of one answer of the policy topic, not yet all taken up.
type backlog struct {
	records []bus.Message
	taken   chan struct{} // closed when they are
}

// takeUp hands records of the policy topic to the control goroutine and waits until all have been taken up, so that at
// most one answer is held; it returns early when ctx ends.
func (a *Agent) takeUp(ctx context.Context, records []bus.Message) {
	b := backlog{records: records, taken: make(chan struct{})}
	if !a.post(ctx, func() { a.pieces.backlog = append(a.pieces.backlog, b) }) {
		return
	}
	select {
	case <-b.taken:
	case <-ctx.Done():
	}
}

// work does a piece of what is left, and returns when to go on: idle with nothing left.
func (a *Agent) work(now quota.Time) time.Duration {
	p := &a.pieces
	if len(p.backlog) > 0 {
		a.takePiece(&p.backlog[0])
	}
	wait := idle
	switch {
	case len(p.backlog) > 0 && !p.whole:
		wait = rest
		if a.checker.Snapshot() == nil { // nobody's check is decided before
			wait = 0
		}
	case a.due() && !p.whole && p.unfit > 0: // else the last of many counters never came under any rules but old ones
		wait = rest
	case a.due() && !p.whole && p.installedAt != 0 && now-p.installedAt < quota.Time(installGap):
		wait = time.Duration(p.installedAt + quota.Time(installGap) - now)
	default:
		a.beginInstall(now)
	}
	if p.unfit > 0 {
		a.refitSome(a.now()) // not the turn's: a snapshot may have been made since
		wait = min(wait, rest)
	}
	return wait
}

// takePiece takes up some records of b, and drops it with the last.
func (a *Agent) takePiece(b *backlog) {
	n := min(recordsAtOnce, len(b.records))
	for _, m := range b.records[:n] {
		a.policyRecord(string(m.Key), m.Offset, m.Value)
	}
	clear(b.records[:n]) // an answer's memory is not kept until the next one
	if b.records = b.records[n:]; len(b.records) == 0 {
		close(b.taken)
		*b = backlog{}
		a.pieces.backlog = a.pieces.backlog[1:]
	}
}

// refitSome puts some more counters under the rules in force. From the last to the first: a slot that is removed
// meanwhile has its place taken by the last one.
func (a *Agent) refitSome(now quota.Time) {
	live, p := a.ledger.Live(), &a.pieces
	p.unfit = min(p.unfit, len(live))
	n := min(slotsAtOnce, p.unfit)
	if p.whole {
		n = p.unfit
	}
	a.refitAll(live[p.unfit-n:p.unfit], now)
	p.unfit -= n
}

func (a *Agent) refitAll(slots []*ledger.Slot, now quota.Time) {
	for _, s := range slots {
		a.refit(s, now)
	}
}
