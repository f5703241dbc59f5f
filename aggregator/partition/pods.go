package partition

import (
	"time"

	"github.com/weirproxy/weir/internal/quota"
)

// pods gives each incarnation of a pod a number that is never used again.
type pods struct {
	byName map[podKey]*pod
	next   uint64
}

type podKey struct {
	name  string
	epoch uint64
}

type pod struct {
	ref  uint64
	seen quota.Time
}

// ref returns the incarnation's number; false at a full table.
func (p *pods) ref(name []byte, epoch uint64, now quota.Time) (uint64, bool) {
	if known := p.byName[podKey{string(name), epoch}]; known != nil {
		known.seen = now
		return known.ref, true
	}
	if len(p.byName) >= maxPods {
		if p.sweep(now); len(p.byName) >= maxPods {
			return 0, false
		}
	}
	p.next++
	p.byName[podKey{string(name), epoch}] = &pod{ref: p.next, seen: now}
	return p.next, true
}

// sweep forgets incarnations that have been silent. What they report later counts from `base`.
func (p *pods) sweep(now quota.Time) {
	for k, v := range p.byName {
		if time.Duration(now-v.seen) > podSilence {
			delete(p.byName, k)
		}
	}
}
