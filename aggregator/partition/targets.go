package partition

import (
	"cmp"
	"maps"
	"slices"

	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/internal/policy"
	"github.com/weirproxy/weir/internal/quota"
)

// target is what the owner knows of one target of its partition.
type target struct {
	name     string
	pods     int  // live pods; 0: none known
	counters int  // alive here
	changed  bool // since the last header
	// overflow holds limits ("policy namespace/policy name/limit") that met a full table.
	overflow map[string]bool
}

// live is the n of this target's decisions: at least 1.
func (t *target) live() int { return max(t.pods, 1) }

func (p *Partition) setLive(t *target, n int) {
	if n != t.pods {
		t.pods = n
		p.changed(t)
	}
}

// changed puts the target into the next header.
func (p *Partition) changed(t *target) {
	if !t.changed {
		t.changed = true
		p.out.changed = append(p.out.changed, t)
	}
}

// targetOf finds a report's target; nil if it is not one of this partition's.
func (p *Partition) targetOf(name []byte) *target {
	if t := p.targets[string(name)]; t != nil {
		return t
	}
	s := string(name)
	if _, _, _, err := policy.ParseTarget(s); err != nil {
		return nil
	}
	if wirev1.Partition(s, p.cfg.Partitions) != p.cfg.Owner.Partition {
		return nil
	}
	return p.target(s)
}

func (p *Partition) target(name string) *target {
	t := p.targets[name]
	if t == nil && len(p.targets) < maxTargetsOwned {
		t = &target{name: name, overflow: map[string]bool{}}
		p.targets[name] = t
		p.changed(t)
	}
	return t
}

// fold finds the overflow counter of the limit that a new counter of a full target belongs to. Its
// identity may have come with an earlier report.
func (p *Partition) fold(t *target, e *entry, now quota.Time) *counter {
	if c := p.folded[e.id]; c != nil && c.target == t {
		p.stats.Folded++
		return c
	}
	id, err := wirev1.DecodeIdentity(e.identity)
	if err != nil || p.cfg.Keys.ID(e.identity) != e.id || id.Target != t.name {
		p.stats.NoRoom++
		return nil
	}
	p.overflows(t, id.Policy+"/"+id.Limit)
	own := e.id
	id.Dimensions = []wirev1.Dimension{{Kind: wirev1.DimOverflow}}
	e.identity = id.Append(nil)
	e.id = p.cfg.Keys.ID(e.identity)
	c := p.counters[e.id]
	if c == nil {
		c = p.add(t, e.id, now)
	}
	if own != e.id && len(p.folded) < maxFolded {
		c.folds = true
		p.folded[own] = c
	}
	p.stats.Folded++
	return c
}

func (p *Partition) overflows(t *target, limit string) {
	if !t.overflow[limit] {
		t.overflow[limit] = true
		p.changed(t)
	}
}

// relax ends a target's overflow once a tenth of its table is free.
func (p *Partition) relax(t *target) {
	if len(t.overflow) == 0 || t.counters*10 > p.cfg.MaxCounters*9 {
		return
	}
	clear(t.overflow)
	p.changed(t)
	for id, c := range p.folded {
		if c.target == t {
			delete(p.folded, id)
		}
	}
}

// headerTargets lists the targets for a header: those that changed, or all; what does not fit goes
// into the next one. Targets without pods and counters are forgotten once a header has said so.
func (p *Partition) headerTargets(all bool) []*wirev1.TargetHeader {
	if all {
		for name, t := range p.targets {
			p.relax(t)
			if t.pods == 0 && t.counters == 0 && !t.changed {
				delete(p.targets, name)
				continue
			}
			p.changed(t)
		}
	}
	n := min(len(p.out.changed), targetsPerHeader)
	list := slices.Clone(p.out.changed[:n])
	p.out.changed = slices.Delete(p.out.changed, 0, n)
	slices.SortFunc(list, func(a, b *target) int { return cmp.Compare(a.name, b.name) })
	out := make([]*wirev1.TargetHeader, len(list))
	for i, t := range list {
		t.changed = false
		out[i] = &wirev1.TargetHeader{
			Target: t.name, LivePods: uint32(t.live()), //nolint:gosec // a count of pods
			Overflow: slices.Sorted(maps.Keys(t.overflow)),
		}
	}
	return out
}
