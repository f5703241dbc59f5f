package leases

import (
	"math"
	"time"
)

// Owner is the owner's side of one counter.
type Owner struct {
	rules *Rules
	epoch uint64
	batch uint64

	now      Time
	held     int           // units granted and not known to have left every window
	frees    map[int64]int // of them, what leaves at a ms of the owner's clock
	freed    int64         // up to which frees has been applied
	accounts map[podRun]*account
	current  []*account // each pod's newest run; nil: never heard

	deficits []float64
}

type podRun struct {
	pod int
	run uint64
}

// account is what the owner knows of one run of one pod.
type account struct {
	podRun
	number  uint64
	demand  float64
	heard   Time
	ended   bool
	charges []*charge       // oldest first
	counted map[GrantID]int // Forgetful only: used units of grants it knows nothing of
}

// charge is one grant that is not settled.
type charge struct {
	id          GrantID
	units, used int
	until       int64 // ms of the owner's clock at which what is not used stops to count; never
}

const (
	ms    = int64(time.Millisecond)
	never = math.MaxInt64
)

// NewOwner owns a counter of pods pods from now on. Its epoch is larger than that of any owner before.
func NewOwner(r *Rules, pods int, epoch uint64, now Time) *Owner {
	return &Owner{
		rules: r, epoch: epoch, now: now, freed: int64(now) / ms, frees: map[int64]int{},
		accounts: map[podRun]*account{}, current: make([]*account, pods),
	}
}

// Advance moves the owner's clock.
func (o *Owner) Advance(now Time) {
	o.now = max(o.now, now)
	for o.freed < int64(o.now)/ms {
		o.freed++
		o.held -= o.frees[o.freed]
		delete(o.frees, o.freed)
	}
}

// after is the first whole ms d from now.
func (o *Owner) after(d time.Duration) int64 { return (int64(o.now) + int64(d) + ms - 1) / ms }

func (o *Owner) passed(at int64) bool { return at <= o.freed }

// free lets units go at a time, at once if it has passed.
func (o *Owner) free(units int, at int64) {
	if o.passed(at) {
		o.held -= units
	} else if at != never {
		o.frees[at] += units
	}
}

// keep undoes free of units that were to go with their charge.
func (o *Owner) keep(c *charge, units int) {
	if o.passed(c.until) {
		o.held += units
	} else if c.until != never {
		o.frees[c.until] -= units
	}
}

// Ingest takes in a report that was sent at least aged ago, in the order of the log.
func (o *Owner) Ingest(r *Report, aged time.Duration) {
	a := o.account(podRun{r.Pod, r.Run})
	if a.ended || r.Number <= a.number {
		return
	}
	a.number, a.demand, a.heard = r.Number, r.Demand, o.now-Time(aged)
	if r.Ended {
		o.end(r.Pod, r.Run, aged)
	}
	if c := o.current[r.Pod]; c == nil || c.run < r.Run {
		o.current[r.Pod] = a
	}
	for _, p := range r.Leases {
		o.settle(a, p, aged)
	}
}

func (o *Owner) account(k podRun) *account {
	a := o.accounts[k]
	if a == nil {
		a = &account{podRun: k}
		o.accounts[k] = a
	}
	return a
}

// end settles the grants of runs before run: no answer of theirs leaves any more.
func (o *Owner) end(pod int, run uint64, aged time.Duration) {
	for k, a := range o.accounts {
		if k.pod != pod || k.run >= run || a.ended {
			continue
		}
		a.ended = true
		if o.rules.Hold != UntilSettled {
			continue
		}
		for _, c := range a.charges {
			o.free(c.units-c.used, o.after(o.rules.tail(aged)))
		}
		a.charges = nil
	}
}

func (o *Owner) settle(a *account, p Progress, aged time.Duration) {
	for i, c := range a.charges {
		if c.id != p.ID {
			continue
		}
		if o.passed(c.until) && o.rules.Hold != UntilVoid {
			return // it has left every window
		}
		o.use(c, p.Used-c.used, aged)
		if p.Closed {
			rest := c.units - c.used
			o.keep(c, rest)
			o.held -= rest
			a.charges = append(a.charges[:i], a.charges[i+1:]...)
		}
		return
	}
	if o.rules.omits(Forgetful) {
		o.count(a, p, aged)
	}
}

// use moves units from the lease to the window: they were used before the report was sent.
func (o *Owner) use(c *charge, units int, aged time.Duration) {
	if units <= 0 {
		return
	}
	c.used += units
	o.keep(c, units)
	at := o.after(o.rules.tail(aged))
	if o.rules.Hold == UntilWindow {
		at = min(at, c.until)
	}
	o.free(units, at)
}

// count adds what was used of a grant that nobody told a Forgetful owner of.
func (o *Owner) count(a *account, p Progress, aged time.Duration) {
	if a.counted == nil {
		a.counted = map[GrantID]int{}
	}
	if more := p.Used - a.counted[p.ID]; more > 0 {
		a.counted[p.ID] = p.Used
		o.held += more
		o.free(more, o.after(o.rules.tail(aged)))
	}
}
