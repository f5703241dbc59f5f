package leases

import (
	"math"
	"time"
)

// maxAnchors bounds the reports whose time of sending a pod remembers.
const maxAnchors = 64

// demandTau smooths a pod's demand.
const demandTau = 200 * time.Millisecond

// lease is a grant in a pod's hands. In a program taken, shut and units are one atomic word, and so are
// answered and the answers to come.
type lease struct {
	id              GrantID
	units           int
	taken, answered int
	until           Time
	shut            bool   // nothing more is taken
	told            uint64 // the report that first told its end; 0: none
}

// Pod is the pod's side of one counter.
type Pod struct {
	rules  *Rules
	name   int
	run    uint64
	leases []*lease // oldest first; with those of which the end is not known to be in the log
	newest GrantID
	sent   []anchor
	number uint64
	ended  bool // told in every report: cheap, and lost with none

	offered  int
	demand   float64
	reported Time
}

type anchor struct {
	number uint64
	at     Time
}

// NewPod is incarnation run of pod name, from 1. Earlier ones are dead.
func NewPod(r *Rules, name int, run uint64, now Time) *Pod {
	return &Pod{rules: r, name: name, run: run, ended: run > 1, reported: now}
}

// Receive takes a batch in, in the order of the log. Batches may come again.
func (p *Pod) Receive(b *Batch, now Time) {
	if !b.ID.after(p.newest) && !p.tolerates(b.ID) {
		return
	}
	if b.ID.after(p.newest) {
		p.newest = b.ID
	}
	for _, g := range b.Grants {
		if g.Pod == p.name && g.Run == p.run {
			p.accept(b.ID, g, now)
		}
	}
}

func (p *Pod) tolerates(id GrantID) bool {
	return p.rules.omits(Repeats) && id.Epoch == p.newest.Epoch || p.rules.omits(NoFence) && id.Epoch < p.newest.Epoch
}

// accept makes a lease of a grant. One that is void on arrival is kept to be told as closed.
func (p *Pod) accept(id GrantID, g Grant, now Time) {
	l := &lease{id: id, units: g.Units}
	switch at, known := p.anchor(g.Anchor); {
	case p.rules.Hold == UntilVoid:
		l.until = now + Time(p.rules.Lease-p.rules.Jitter)
	case p.rules.omits(FromReceipt):
		l.until = now + Time(p.rules.Lease)
	case known:
		l.until = at + Time(p.rules.Lease)
	}
	l.shut = now >= l.until
	p.leases = append(p.leases, l)
}

func (p *Pod) anchor(number uint64) (at Time, known bool) {
	for _, a := range p.sent {
		if a.number == number {
			return a.at, true
		}
	}
	return 0, false
}

// Offer counts a request that was not there before.
func (p *Pod) Offer() { p.offered++ }

// pick is the oldest lease to take from, nil if there is none.
func (p *Pod) pick(now Time) *lease {
	for _, l := range p.leases {
		if !l.shut && l.taken < l.units && now < l.until {
			return l
		}
	}
	return nil
}

// take takes a unit, unless the lease was emptied or shut since it was picked.
func (p *Pod) take(l *lease) bool {
	if l.taken == l.units || l.shut && !p.rules.omits(LooseTake) {
		return false
	}
	l.taken++
	return true
}

// Report tells of every lease whose end is not known to be in the log, and shuts those that are over.
func (p *Pod) Report(now Time) Report {
	p.number++
	p.sent = append(p.sent, anchor{p.number, now})
	if len(p.sent) > maxAnchors {
		p.sent = p.sent[1:]
	}
	p.observe(now)
	r := Report{Pod: p.name, Run: p.run, Number: p.number, Demand: p.demand, Ended: p.ended}
	for _, l := range p.leases {
		l.shut = l.shut || l.taken == l.units || now >= l.until
		g := p.progress(l)
		if g.Closed && l.told == 0 {
			l.told = p.number
		}
		r.Leases = append(r.Leases, g)
	}
	return r
}

// progress of a lease. Where answers count, those that are still to leave are neither used nor over.
func (p *Pod) progress(l *lease) Progress {
	if p.rules.Hold == UntilSettled && !p.rules.omits(InFlight) {
		return Progress{l.id, l.answered, l.shut && l.taken == l.answered}
	}
	return Progress{l.id, l.taken, l.shut}
}

// Acknowledge notes that report number is in the log.
func (p *Pod) Acknowledge(number uint64) {
	rest := p.leases[:0]
	for _, l := range p.leases {
		if l.told == 0 || l.told > number {
			rest = append(rest, l)
		}
	}
	clear(p.leases[len(rest):])
	p.leases = rest
}

func (p *Pod) observe(now Time) {
	dt := time.Duration(now - p.reported)
	if dt <= 0 {
		return
	}
	rate := float64(p.offered) / dt.Seconds()
	p.demand += (1 - math.Exp(-dt.Seconds()/demandTau.Seconds())) * (rate - p.demand)
	p.offered, p.reported = 0, now
}
