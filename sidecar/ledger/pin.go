package ledger

import "sync/atomic"

// pinShards spreads pins over cache lines; a power of two.
const pinShards = 32

// pins counts the checks that may hold slots, by the parity of the epoch they began in.
type pins struct {
	epoch  atomic.Uint64
	shards [pinShards]pinShard
}

type pinShard struct {
	held [2]atomic.Int64
	_    [112]byte // two cache lines: the adjacent-line prefetcher pairs them
}

// Pin is a check's hold on the ledger; Unpin it exactly once.
type Pin struct{ held *atomic.Int64 }

// Unpin ends the hold: slots found under it must not be touched any more.
func (p Pin) Unpin() { p.held.Add(-1) }

func (p *pins) pin(hint uint32) Pin {
	shard := &p.shards[hint%pinShards]
	for {
		epoch := p.epoch.Load()
		held := &shard.held[epoch&1]
		held.Add(1)
		if p.epoch.Load() == epoch {
			return Pin{held}
		}
		held.Add(-1) // the epoch moved on between the two: this count protects nothing
	}
}

// flip begins a grace period: pins from now on have the other parity.
func (p *pins) flip() { p.epoch.Add(1) }

// drained reports whether all pins of the epoch before the last flip have ended. No new one can
// begin there until the next flip, so each shard may be looked at in turn.
func (p *pins) drained() bool {
	old := (p.epoch.Load() - 1) & 1
	for i := range p.shards {
		if p.shards[i].held[old].Load() != 0 {
			return false
		}
	}
	return true
}
