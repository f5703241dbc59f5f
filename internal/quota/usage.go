package quota

import (
	"errors"
	"math"
	"time"
)

// Split says on which side of a Calendar reset an entry of a report lies.
type Split uint8

// The splits: of two entries of one counter in one report the first ends at the reset, the second starts
// there.
const (
	Whole Split = iota
	EndsAtReset
	StartsAtReset
)

// Usage is one entry of a report as its owner sees it.
type Usage struct {
	Pod              uint64 // the owner's own number of the pod's name
	Epoch            uint64 // the pod's
	Made             uint64
	Cumulative, Base uint64
	Demand, MeanCost float64 // MeanCost 0 stands for 1
	Burst            float64
	Span, Age        time.Duration
	// Lead is the owner's delta0: half of the smallest produce-to-acknowledgement time, at most 8 ms.
	Lead     time.Duration
	Appended Millis
	Offset   int64
	Split    Split
}

// Errors of Check.
var (
	ErrNotFinite   = errors.New("demand, mean cost or burst is negative or not finite")
	ErrBackwards   = errors.New("fewer units admitted than acknowledged before")
	ErrImplausible = errors.New("more units or demand than one pod can have")
)

// Check refuses what no pod can have counted: rate is the most that one pod may admit or be asked for,
// units/s. One second is granted beyond the span.
func (u *Usage) Check(rate float64) error {
	for _, x := range [...]float64{u.Demand, u.MeanCost, u.Burst} {
		if x < 0 || math.IsNaN(x) || math.IsInf(x, 0) {
			return ErrNotFinite
		}
	}
	switch {
	case u.Cumulative < u.Base:
		return ErrBackwards
	case float64(u.Cumulative-u.Base) > rate*(max(u.Span, 0).Seconds()+1), u.Demand*one(u.MeanCost) > rate,
		u.Burst > rate:
		return ErrImplausible
	}
	return nil
}

// window is when the units were admitted, owner time.
func (u *Usage) window(strict bool) (from, to Millis) {
	back := max(u.Age, 0)
	if !strict {
		back += u.Lead
	}
	ms := func(d time.Duration) Millis { return Millis(d.Round(time.Millisecond) / time.Millisecond) }
	return u.Appended - ms(back+max(u.Span, 0)), u.Appended - ms(back)
}

// mostLate bounds what one report's age counts for: a backlog is no sign of the next report's delay.
const mostLate = 100 * time.Millisecond

// lateness is the mean age of the entry's units when it was handed over, s.
func (u *Usage) lateness() float64 {
	return min(max(u.Age, 0)+max(u.Span, 0)/2, mostLate).Seconds()
}

// podKey is one slot of one run of one pod.
type podKey struct{ pod, epoch, made uint64 }

// podTotal is what the owner remembers of it.
type podTotal struct {
	key      podKey
	last     uint64
	rate     float64 // demand, requests/s, as reported
	mean     float64
	burst    float64
	appended Millis
	to       Millis
	offset   int64
}

// steadyTimes the demand that a pod reported before may come without being taken for a front.
const steadyTimes = 2

// longestSpan of a report while all is well. What an outage kept back is spread: nothing is known of it.
const longestSpan = Millis(skipLong / time.Millisecond)

// steady is how many units between two times would be no surprise. What is more came with a front, of which a report
// does not say when it began: it is taken to have come at the report's end, since spread over the span it would
// leave the window before its time.
func (p *podTotal) steady(from, to Millis) uint64 {
	if p.appended == 0 || to-from > longestSpan {
		return math.MaxUint64
	}
	return uint64(steadyTimes*p.rate*p.mean*float64(to-from)/1000) + 1
}

// maxPods bounds what one counter remembers. Beyond it the slot that reported longest ago goes; its next
// report counts from its base.
const maxPods = 1 << 14

// pods are the pods of one counter, in an order that depends on what came alone.
type pods struct {
	list  []podTotal
	index map[podKey]int32
}

func (p *pods) find(k podKey) *podTotal {
	if i, ok := p.index[k]; ok {
		return &p.list[i]
	}
	return nil
}

// add makes room for a slot. The demand of the same pod's earlier slots is superseded.
func (p *pods) add(k podKey) *podTotal {
	if p.index == nil {
		p.index = make(map[podKey]int32)
	}
	if len(p.list) >= maxPods {
		p.remove(p.oldest())
	}
	p.index[k] = int32(len(p.list))
	p.list = append(p.list, podTotal{key: k})
	return &p.list[len(p.list)-1]
}

func (p *pods) oldest() int {
	o := 0
	for i := range p.list {
		if p.list[i].appended < p.list[o].appended {
			o = i
		}
	}
	return o
}

func (p *pods) remove(i int) {
	delete(p.index, p.list[i].key)
	end := len(p.list) - 1
	if i != end {
		p.list[i] = p.list[end]
		p.index[p.list[i].key] = int32(i)
	}
	p.list = p.list[:end]
}

// expire drops slots silent since before.
func (p *pods) expire(before Millis) {
	for i := len(p.list) - 1; i >= 0; i-- {
		if p.list[i].appended < before {
			p.remove(i)
		}
	}
}

// supersede takes away the demand of the pod's earlier slots, and of its earlier runs: the counter lives in the newest.
func (p *pods) supersede(k podKey) {
	for i := range p.list {
		o := &p.list[i]
		if o.key.pod == k.pod && (o.key.epoch != k.epoch || o.key.made < k.made) {
			o.rate, o.burst = 0, 0
		}
	}
}
