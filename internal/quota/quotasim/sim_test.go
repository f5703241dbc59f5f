package quotasim

import (
	"math"
	"reflect"
	"testing"
	"time"
)

// mean is what was admitted a second in [from, to).
func mean(r Result, from, to time.Duration) float64 {
	return float64(sum(r.Admitted[from.Milliseconds():to.Milliseconds()])) / (to - from).Seconds()
}

func constant(rate float64) func(time.Duration) float64 {
	return func(time.Duration) float64 { return rate }
}

// Refused requests charge nothing: at twice the limit, the whole limit gets through.
func TestCase01SteadyDoubleLoadGetsTheWholeLimit(t *testing.T) {
	for _, pods := range []int{1, 10} {
		r := Run(Config{Pods: pods, Rule: sliding(1000, second), Duration: 12 * second, Steady: 3 * second,
			Load: even(pods, constant(2000)), Seed: 1})
		if m := mean(r, 3*second, 12*second); m < 950 || m > 1010 {
			t.Errorf("%d pods: %v a second of 1000", pods, m)
		}
		if r.Total-r.Log > 200 {
			t.Errorf("%d pods: the owner counted %d of %d", pods, r.Log, r.Total)
		}
	}
}

// ALGORITHM 7, number 13: the limit is raised and lowered while the counter is overloaded; counts are kept, and the new
// amount holds at once, both ways.
func TestCase03LimitChangesUnderLoad(t *testing.T) {
	for _, c := range []struct{ before, after float64 }{{300, 900}, {900, 300}} {
		rule := sliding(c.after, second)
		r := Run(Config{Pods: 10, Rule: sliding(c.before, second), Duration: 12 * second, Steady: 3 * second,
			Load: even(10, constant(3000)), ChangeAt: 5 * second, Change: &rule, Seed: 1})
		if m := mean(r, 2*second, 5*second); math.Abs(m/c.before-1) > 0.06 {
			t.Errorf("%v to %v: %v before", c.before, c.after, m)
		}
		// Bursts that the change makes pass through the window for seconds, and cost some of it.
		if m := mean(r, 7*second, 12*second); m < 0.85*c.after || m > 1.05*c.after {
			t.Errorf("%v to %v: %v after", c.before, c.after, m)
		}
		worst, _ := windows(r.Admitted[6000:], 1000, 0)
		if worst > 1.1*c.after {
			t.Errorf("%v to %v: a window of %v a second after the change", c.before, c.after, worst)
		}
	}
}

// A low limit on many nodes: sparse pods get the fleet's limit, within 5 % of it (ALGORITHM 7, number 10),
// and idle ones dilute nobody's share.
func TestCase06SmallLimitOnManyPods(t *testing.T) {
	if testing.Short() || raceEnabled {
		t.Skip("a minute of a hundred pods")
	}
	r := Run(Config{Pods: 100, Rule: sliding(10, second), Duration: 61 * second, Steady: second,
		Load: even(100, constant(30)), Seed: 1})
	if m := mean(r, second, 61*second); m < 9.5 || m > 10.8 {
		t.Errorf("%v a second of 10, on a hundred sparse pods", m)
	}
	one := func(i int, _ time.Duration) float64 {
		if i != 17 {
			return 0
		}
		return 30
	}
	r = Run(Config{Pods: 100, Rule: sliding(10, second), Duration: 12 * second, Steady: 2 * second, Load: one, Seed: 1})
	if m := mean(r, 2*second, 12*second); m < 9 || m > 10.2 {
		t.Errorf("%v a second of 10, on one of a hundred pods", m)
	}
}

// ALGORITHM 7, number 9.
func TestWrongNumberOfPods(t *testing.T) {
	for _, believed := range []int{10, 40} {
		r := Run(Config{Pods: 20, Believed: believed, Rule: sliding(1000, second), Duration: 8 * second, Steady: 3 * second,
			Load: even(20, step(time.Second, 300, 5000)), Seed: 1})
		if r.Over > 15 || r.Under > 6 {
			t.Errorf("20 pods believed to be %d: over %.1f %%, under %.1f %%", believed, r.Over, r.Under)
		}
	}
}

// ALGORITHM 7, number 11: steady overload is no surprise.
func TestNoUrgentStorm(t *testing.T) {
	r := Run(Config{Pods: 20, Rule: sliding(1000, second), Duration: 6 * second, Load: even(20, constant(10_000)), Seed: 1})
	if r.Urgent*20 > r.Reports {
		t.Errorf("%d of %d reports were urgent", r.Urgent, r.Reports)
	}
}

// The bound of ALGORITHM 5 with messages lost and repeated: cumulative counts make them harmless.
func TestLossAndDuplicatesAreHarmless(t *testing.T) {
	for name, c := range map[string]Config{
		"usage lost":      {UsageLoss: 0.3},
		"usage repeated":  {UsageDuplicate: 0.3},
		"decisions lost":  {DecisionLoss: 0.3},
		"everything lost": {UsageLoss: 0.2, UsageDuplicate: 0.2, DecisionLoss: 0.2},
	} {
		c.Pods, c.Rule, c.Duration, c.Steady, c.Seed = 10, sliding(1000, second), 8*second, 3*second, 1
		c.Load = even(10, constant(5000))
		r := Run(c)
		if r.Over > 18 || r.Under > 9 {
			t.Errorf("%s: over %.1f %%, under %.1f %%", name, r.Over, r.Under)
		}
		if r.Log > r.Total {
			t.Errorf("%s: counted %d of %d admitted", name, r.Log, r.Total)
		}
	}
}

// ALGORITHM 3.4: a long outage, with the load rising in it, does not let the limit go.
func TestOutageHoldsTheLimit(t *testing.T) {
	for name, load := range map[string]func(time.Duration) float64{
		"steady overload":    constant(3000),
		"rise in the outage": step(8*second, 500, 3000),
	} {
		r := Run(Config{Pods: 10, Rule: sliding(1000, second), Duration: 18 * second, Steady: 2 * second,
			Down: [2]time.Duration{4 * second, 14 * second}, Load: even(10, load), Seed: 1})
		worst, _ := windows(r.Admitted[4300:14000], 1000, 0)
		if worst > 1150 { // shares of a suppressed record may sum to more than one, by its margin
			t.Errorf("%s: a window of %v of 1000 in the outage", name, worst)
		}
		if m := mean(r, 10*second, 14*second); m < 900 {
			t.Errorf("%s: %v a second in the outage", name, m)
		}
		after, _ := windows(r.Admitted[14000:], 1000, 0)
		if after > 1150 || mean(r, 16*second, 18*second) < 930 {
			t.Errorf("%s: after it a window of %v, a mean of %v", name, after, mean(r, 16*second, 18*second))
		}
	}
}

// Costs: requests of 20 units share a limit as those of one do.
func TestCostsShareTheLimit(t *testing.T) {
	r := Run(Config{Pods: 20, Rule: sliding(10_000, second), Cost: 20, Duration: 8 * second, Steady: 3 * second,
		Load: even(20, step(second, 100, 1500)), Seed: 1})
	if r.Over > 15 || r.Under > 8 {
		t.Errorf("over %.1f %%, under %.1f %%", r.Over, r.Under)
	}
}

func TestSameSeedSameRun(t *testing.T) {
	c := Config{Pods: 10, Rule: sliding(100, second), Duration: 3 * second, Load: zipf(10, 1, constant(300)), Seed: 3}
	if a, b := Run(c), Run(c); !reflect.DeepEqual(a, b) {
		t.Error("two runs of one seed differ")
	}
}
