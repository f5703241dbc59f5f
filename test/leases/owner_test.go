package leases

import (
	"testing"
	"time"
)

const second = Time(time.Second)

// pair is an owner and the only pod it knows, with a lease of 0.2 s and a window of 1 s. The pod has reported at start.
type pair struct {
	rules Rules
	owner *Owner
	pod   *Pod
}

const start = 100 * second

func newPair(hold Hold) *pair {
	p := &pair{rules: Rules{Limit: 10, Window: time.Second, Lease: 200 * time.Millisecond, Hold: hold, Drift: 0.001}}
	p.owner = NewOwner(&p.rules, 1, 1, start)
	p.pod = NewPod(&p.rules, 0, 1, start)
	p.tell(start)
	return p
}

// tell is a report that takes no time.
func (p *pair) tell(now Time) {
	r := p.pod.Report(now)
	p.owner.Advance(now)
	p.owner.Ingest(&r, 0)
	p.pod.Acknowledge(r.Number)
}

// grant is a tick, and delivers its batch.
func (p *pair) grant(now Time) Batch {
	p.owner.Advance(now)
	b := p.owner.Tick(0)
	p.pod.Receive(&b, now)
	return b
}

// spend admits up to n requests, and answers them.
func (p *pair) spend(n int, now Time) (admitted int) {
	for range n {
		l := p.pod.pick(now)
		if l == nil || !p.pod.take(l) {
			break
		}
		l.answered++
		admitted++
	}
	return admitted
}

func (p *pair) left(now Time) int {
	p.owner.Advance(now)
	return p.rules.Limit - p.owner.held
}

func TestUnitsComeBackWhenTheyHaveLeftTheWindow(t *testing.T) {
	for _, hold := range []Hold{UntilWindow, UntilSettled} {
		p := newPair(hold)
		p.grant(start)
		if n := p.spend(4, start+second/10); n != 4 {
			t.Fatalf("%v: admitted %d of 4", hold, n)
		}
		p.tell(start + 2*second/10) // the lease is over: 6 were not used
		if n := p.left(start + 2*second/10); n != 6 {
			t.Errorf("%v: %d left when 6 were given back", hold, n)
		}
		if n := p.left(start + 12*second/10); n != 6 { // a window later on a clock that may be fast
			t.Errorf("%v: %d left at the end of the window by a fast clock", hold, n)
		}
		if n := p.left(start + 12*second/10 + second/500); n != 10 {
			t.Errorf("%v: %d left after the window", hold, n)
		}
	}
}

func TestAReportThatComesAgainChangesNothing(t *testing.T) {
	p := newPair(UntilSettled)
	p.grant(start)
	p.spend(4, start)
	old := p.pod.Report(start + second/10)
	for range 2 {
		p.owner.Ingest(&old, 0)
	}
	p.tell(start + 3*second/10)
	p.owner.Ingest(&old, 0)
	if n := p.left(start + 3*second/10); n != 6 {
		t.Errorf("%d left of 10 of which 4 were used", n)
	}
}

// A pod that vanishes takes its units along. Charged has them back when the lease and the window are over; Held when a new
// run proves the old one dead, a window later, and never otherwise.
func TestWhatAVanishedPodHeld(t *testing.T) {
	p := newPair(UntilWindow)
	p.grant(start)
	if n := p.left(start + 12*second/10); n != 0 {
		t.Errorf("Charged: %d left while the lease could still count", n)
	}
	if n := p.left(start + 121*second/100); n != 10 {
		t.Errorf("Charged: %d left after the lease and the window", n)
	}

	p = newPair(UntilSettled)
	p.grant(start)
	hour := start + 3600*second
	if n := p.left(hour); n != 0 {
		t.Errorf("Held: %d left of what nobody settled", n)
	}
	p.pod = NewPod(&p.rules, 0, 2, hour)
	p.tell(hour)
	if n := p.left(hour + second); n != 0 {
		t.Errorf("Held: %d left within a window of the proof", n)
	}
	if n := p.left(hour + 101*second/100); n != 10 {
		t.Errorf("Held: %d left a window after the proof", n)
	}
}

// A grant that comes late is void on arrival, and given back.
func TestALateGrantIsGivenBack(t *testing.T) {
	p := newPair(UntilSettled)
	p.owner.Advance(start)
	b := p.owner.Tick(0)
	late := start + Time(p.rules.Lease)
	p.pod.Receive(&b, late)
	if n := p.spend(1, late); n != 0 {
		t.Error("a late grant was used")
	}
	p.tell(late)
	if n := p.left(late); n != 10 {
		t.Errorf("%d left of a grant that came too late", n)
	}
}

// A check that is under way keeps its lease from being over.
func TestAnAnswerStillToLeaveIsHeld(t *testing.T) {
	p := newPair(UntilSettled)
	p.grant(start)
	l := p.pod.pick(start)
	p.pod.take(l)
	p.tell(start + second)
	if n := p.left(start + 60*second); n != 0 {
		t.Errorf("%d left while an answer is under way", n)
	}
	l.answered++
	p.tell(start + 60*second)
	if n := p.left(start + 60*second); n != 9 {
		t.Errorf("%d left when the answer has just gone", n)
	}
}

func TestANewOwnerKnowsWhatWasGranted(t *testing.T) {
	for _, hold := range []Hold{UntilWindow, UntilSettled} {
		p := newPair(hold)
		b := p.grant(start)
		next := NewOwner(&p.rules, 1, 2, 7*second) // its clock is its own
		next.Restore([]Logged[Batch]{{&b, time.Minute}}, nil, time.Minute+100*time.Millisecond)
		if left := p.rules.Limit - next.held; left != 0 {
			t.Errorf("%v: %d left while the old owner's grant is open", hold, left)
		}
		if again := next.Tick(0); len(again.Grants) != 0 {
			t.Errorf("%v: granted twice: %v", hold, again)
		}
	}
}
