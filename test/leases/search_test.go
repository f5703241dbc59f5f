package leases

import (
	"testing"

	"pgregory.net/rapid"
)

// excess runs c, and returns by how many units the fullest window exceeds the limit: of the instants at which checks
// read the clock, and of those at which their answers left.
func excess(c Config) (stamps, answers int) {
	r := Run(c)
	return c.Over(r.Stamps), c.Over(r.Answers)
}

// Theorem 1: Charged admits nothing beyond the limit in any window of the instants at which checks read
// the clock. By answers it exceeds it by no more than the checks that were stopped.
func TestChargedHoldsByTheClock(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := Search(UntilWindow, 0, drawn(t))
		stamps, answers := excess(c)
		if stamps > 0 {
			t.Fatalf("%d units beyond the limit", stamps)
		}
		if answers > len(c.Stops) {
			t.Fatalf("%d answers beyond the limit, and %d checks were stopped", answers, len(c.Stops))
		}
	})
}

// Theorem 2: Held admits nothing beyond the limit, by the instants of answers either, however long anything stops.
func TestHeldHoldsByTheAnswer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		if stamps, answers := excess(Search(UntilSettled, 0, drawn(t))); stamps > 0 || answers > 0 {
			t.Fatalf("%d units beyond the limit, %d answers", stamps, answers)
		}
	})
}

// The same over many schedules that are not shrunk; and the search presses: some window is full.
func TestNoScheduleIsFoundThatBreaksThem(t *testing.T) {
	n := schedules(150, 100_000)
	for _, hold := range []Hold{UntilWindow, UntilSettled} {
		full, late := 0, 0
		for seed := range n {
			c := Search(hold, 0, seeded(seed))
			stamps, answers := excess(c)
			if stamps > 0 || hold == UntilSettled && answers > 0 || answers > len(c.Stops) {
				t.Fatalf("%v, schedule %d: %d units beyond the limit, %d answers", hold, seed, stamps, answers)
			}
			full += b2i(stamps == 0)
			late += b2i(answers > 0)
		}
		t.Logf("%v: %d schedules, a window was full in %d; answers exceeded the limit in %d", hold, n, full, late)
		if full < int(n/4) {
			t.Errorf("%v: a window was full in %d of %d schedules only", hold, full, n)
		}
		if hold == UntilWindow && late == 0 {
			t.Error("no answer of Charged was ever late: the search does not stop checks where it hurts")
		}
	}
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Without any one of the rules some schedule breaks what the theorems say. The sketch, which drops most of them, breaks too.
func TestEachRuleIsNeeded(t *testing.T) {
	byClock := func(stamps, _ int) int { return stamps }
	byAnswer := func(_, answers int) int { return answers }
	for _, x := range []struct {
		name string
		hold Hold
		omit Omission
		what func(stamps, answers int) int
	}{
		{"the sketch", UntilVoid, 0, byClock},
		{"a lease runs from its report", UntilWindow, FromReceipt, byClock},
		{"a lease in hand before the clock", UntilWindow, ClockFirst, byClock},
		{"nothing is taken from a closed lease", UntilWindow, LooseTake, byClock},
		{"a batch counts once", UntilWindow, Repeats, byClock},
		{"older owners' batches are ignored", UntilWindow, NoFence, byClock},
		{"a new owner knows what was granted", UntilWindow, Forgetful, byClock},
		{"the owner reads its clock after the log", UntilWindow, StaleClock, byClock},
		{"clocks drift", UntilWindow, NoDrift, byClock},
		{"brokers' clocks differ", UntilWindow, NoStampError, byClock},
		{"no unit goes before it is settled", UntilWindow, 0, byAnswer},
		{"Held: answers still to leave are not over", UntilSettled, InFlight, byAnswer},
		{"Held: nothing is taken from a closed lease", UntilSettled, LooseTake, byAnswer},
		{"Held: a batch counts once", UntilSettled, Repeats, byAnswer},
		{"Held: older owners' batches are ignored", UntilSettled, NoFence, byAnswer},
		{"Held: a new owner knows what was granted", UntilSettled, Forgetful, byAnswer},
		{"Held: the owner reads its clock after the log", UntilSettled, StaleClock, byAnswer},
		{"Held: clocks drift", UntilSettled, NoDrift, byAnswer},
		{"Held: brokers' clocks differ", UntilSettled, NoStampError, byAnswer},
	} {
		t.Run(x.name, func(t *testing.T) {
			const most = 3000
			for seed := range uint64(most) {
				if over := x.what(excess(Search(x.hold, x.omit, seeded(seed)))); over > 0 {
					t.Logf("schedule %d: %d beyond the limit", seed, over)
					return
				}
			}
			t.Errorf("none of %d schedules needs it", most)
		})
	}
}

// Held needs no clock of a pod's: whatever a lease is measured from, and whenever the clock is read.
func TestHeldNeedsNoClockOfAPod(t *testing.T) {
	for seed := range schedules(50, 20_000) {
		c := Search(UntilSettled, FromReceipt|ClockFirst, seeded(seed))
		if _, answers := excess(c); answers > 0 {
			t.Fatalf("schedule %d: %d answers beyond the limit", seed, answers)
		}
	}
}

func TestSameSeedSameRun(t *testing.T) {
	a, b := Run(Search(UntilWindow, 0, seeded(3))), Run(Search(UntilWindow, 0, seeded(3)))
	for i := range a.Answers {
		if a.Answers[i] != b.Answers[i] || a.Stamps[i] != b.Stamps[i] {
			t.Fatalf("two runs of one seed differ at %d ms", i)
		}
	}
}
