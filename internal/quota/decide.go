package quota

import "time"

// Take is one rate that a request would take from.
type Take struct {
	Cell *Cell
	// Rule is the amount in force by the pod's own policy; the Cell's Counter holds the same one.
	Rule  *Rule
	Fresh *Fresh // of the partition that decides on the counter
	Fleet *Fleet // of the counter's target
	// Cost, units. A request of no cost passes and is not counted.
	Cost uint64
	// Enforced rates decide together. The others are shadow: the rates of one Group (a limit) are
	// judged together, alone.
	Enforced bool
	Group    int
}

// Basis is what an answer rests on.
type Basis uint8

// The bases. The zero value: the rate was not judged (a shadow rate of a refused request).
const (
	BasisNone        Basis = iota
	BasisCold              // no record, header fresh: the counter is far from its limit
	BasisDecision          // a record, and a fresh header
	BasisFallback          // no fresh header: the local share
	BasisFailureMode       // no fresh header: Allow or Deny by policy
)

func (b Basis) String() string {
	return [...]string{"none", "cold", "decision", "fallback", "failure mode"}[min(b, BasisFailureMode)]
}

// Outcome is the answer of one rate. Callers reuse the memory.
type Outcome struct {
	OK    bool // would admit; a shadow rate that is false would refuse
	Basis Basis
	// Remaining units of the whole fleet as far as this pod knows, after this request.
	Remaining uint64
	// RetryAfter is the soonest that the same request could pass, if refused; not jittered.
	RetryAfter time.Duration
	// Reset is the time until the amount is whole again, if nobody takes any.
	Reset time.Duration
	// Age of the decision; 0 if there is none.
	Age time.Duration

	bucket   uint64  // of the own window
	excess   float64 // learned-burst candidate
	fraction float64 // fallback: credit that this request draws whole
	drawn    drawKind
}

type drawKind uint8

const (
	drawNone   drawKind = iota
	drawCredit          // from the share of the last decision
	drawChance          // from a cold counter's share
)

// Result is the answer to a request.
type Result struct {
	OK bool
	// Refused is the index of the enforced rate that refused, of several the one that stays so longest;
	// -1 if OK.
	Refused int
	// Urgent: some counter has far more demand than its owner knows; its partition should be
	// flushed now. Counter.Urgent says whether that is still so.
	Urgent bool
}

// Decide answers one request, and charges it: every enforced rate is tested read-only, then all are
// charged or none is; shadow rates are charged with what they would have admitted of it. out is as
// long as takes at least, and is filled in takes' order. Decide does not lock, wait or allocate. Safe for
// concurrent use: k racing calls may together exceed by k-1 requests. rnd is the caller's alone.
func Decide(now Time, takes []Take, rnd *Rand, out []Outcome) Result {
	r, refusals := test(now, takes, rnd, out)
	for i := range takes {
		t, o := &takes[i], &out[i]
		if !t.Enforced || t.Cost == 0 {
			continue
		}
		if r.OK {
			t.Cell.admit(now, t, o)
		} else if !o.OK {
			t.Cell.refuse(now, o)
		}
		// Demand: requests that no other enforced rate refused.
		if refusals == 0 || refusals == 1 && !o.OK {
			r.Urgent = t.Cell.demand(now, t, o) || r.Urgent
		}
	}
	if r.OK {
		r.Urgent = shadow(now, takes, rnd, out, true) || r.Urgent
	}
	return r
}

// Preview answers as Decide would, and charges nothing. Chance is drawn anew, so that at the edge of a
// share the two may differ.
func Preview(now Time, takes []Take, rnd *Rand, out []Outcome) Result {
	r, _ := test(now, takes, rnd, out)
	if r.OK {
		shadow(now, takes, rnd, out, false)
	}
	return r
}

func test(now Time, takes []Take, rnd *Rand, out []Outcome) (r Result, refusals int) {
	r = Result{OK: true, Refused: -1}
	for i := range takes {
		if !takes[i].Enforced {
			out[i] = Outcome{OK: true}
			continue
		}
		judge(now, &takes[i], rnd, &out[i])
		if out[i].OK {
			continue
		}
		refusals++
		r.OK = false
		if r.Refused < 0 || out[i].RetryAfter > out[r.Refused].RetryAfter {
			r.Refused = i
		}
	}
	return r, refusals
}

// shadow judges each group of shadow rates, all or nothing like the enforced ones, and charges if told to.
func shadow(now Time, takes []Take, rnd *Rand, out []Outcome, charge bool) (urgent bool) {
	for i := range takes {
		if takes[i].Enforced || out[i].Basis != BasisNone {
			continue
		}
		refusals := 0
		for j := i; j < len(takes); j++ {
			if t := &takes[j]; !t.Enforced && t.Group == takes[i].Group {
				judge(now, t, rnd, &out[j])
				if !out[j].OK {
					refusals++
				}
			}
		}
		for j := i; charge && j < len(takes); j++ {
			t, o := &takes[j], &out[j]
			if t.Enforced || t.Group != takes[i].Group || t.Cost == 0 {
				continue
			}
			if refusals == 0 {
				t.Cell.admit(now, t, o)
			} else if !o.OK {
				t.Cell.refuse(now, o)
			}
			if refusals == 0 || refusals == 1 && !o.OK {
				urgent = t.Cell.demand(now, t, o) || urgent
			}
		}
	}
	return urgent
}

const (
	newestGrain = time.Millisecond       // spans and ages travel in ms
	usedGrain   = 100 * time.Millisecond // eviction needs no more
)

func (c *Cell) admit(now Time, t *Take, o *Outcome) {
	c.settle(now, o, float64(t.Cost))
	c.w[wAdmitted].Add(t.Cost)
	c.addOwn(o.bucket, t.Cost)
	if c.w[wFirst].Load() == 0 {
		c.w[wFirst].CompareAndSwap(0, uint64(now))
	}
	if uint64(now)-c.w[wNewest].Load() >= uint64(newestGrain) {
		c.w[wNewest].Store(uint64(now))
	}
}

func (c *Cell) refuse(now Time, o *Outcome) { c.settle(now, o, 0) }

// settle consumes the credit that was drawn by chance, whatever came of it: what is admitted counts
// itself.
func (c *Cell) settle(now Time, o *Outcome, admitted float64) {
	switch o.drawn {
	case drawNone:
	case drawCredit:
		c.addFloat(wForfeit, o.fraction-admitted)
	case drawChance:
		c.w[wDraw].Store(uint64(now))
	}
}

// demand counts a request, and says whether so many came since the last flush that it should not wait.
func (c *Cell) demand(now Time, t *Take, o *Outcome) bool {
	n := c.w[wRequests].Add(1)
	c.w[wOffered].Add(t.Cost)
	if uint64(now)-c.w[wUsed].Load() >= uint64(usedGrain) {
		c.w[wUsed].Store(uint64(now))
	}
	if o.excess > 0 {
		c.candidate(now, o.excess)
	}
	x := float64(n - c.w[wFlushed].Load())
	if x < surgeRequests {
		return false
	}
	return c.surging(x, float64(uint64(now)-c.w[wFlushAt].Load()))
}

const (
	surgeRequests = 6
	surgePart     = 0.002 // of M
	surgeTimes    = 3     // of the expected demand
	surgeGap      = 10 * time.Millisecond
)

// surging: x requests within dt ns of the last flush are far more than expected.
func (c *Cell) surging(x, dt float64) bool {
	return dt >= float64(surgeGap) && x >= float(&c.w[wSurge]) &&
		x >= surgeTimes*float(&c.w[wExpect])*dt+surgeRequests
}

// candidate raises the learned-burst candidate.
func (c *Cell) candidate(now Time, excess float64) {
	for {
		old := c.w[wCand].Load()
		if float(&c.w[wCand]) >= excess {
			return
		}
		if c.w[wCand].CompareAndSwap(old, bits(excess)) {
			c.w[wCandAt].Store(uint64(now))
			return
		}
	}
}

func (c *Cell) addFloat(word int, x float64) {
	for {
		old := c.w[word].Load()
		if c.w[word].CompareAndSwap(old, bits(floatOf(old)+x)) {
			return
		}
	}
}
