package leases

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/weirproxy/weir/internal/quota"
	"github.com/weirproxy/weir/internal/quota/quotasim"
)

// fleet is n in the tables.
const fleet = 20

// shapes are how a total load lies over the fleet.
func shapes(total float64) []Load {
	sum := 0.0
	for i := range fleet {
		sum += 1 / float64(i+1)
	}
	return []Load{
		func(int, time.Duration) float64 { return total / fleet },                                           // even
		func(i int, _ time.Duration) float64 { return total / float64(i+1) / sum },                          // Zipf
		func(i int, t time.Duration) float64 { return total * float64(b2i(int(t/time.Second)%fleet == i)) }, // all on one pod, each second another
	}
}

// cell is one limit under one load.
type cell struct {
	window, lease time.Duration
	each          float64 // M/n
	load          Load
	seeds         uint64
}

// cost is what came of a cell: the worst over-admission and the mean under-admission, %.
type cost struct{ over, under, entries float64 }

func (c cell) limit() int { return int(c.each * fleet) }

// span is how long a run takes, and from when on it is measured.
func (c cell) span() (steady, end time.Duration) {
	return 2*c.window + time.Second, max(5*c.window, 20*time.Second)
}

func (c cell) leases(hold Hold) cost {
	steady, end := c.span()
	x := Config{Pods: fleet, Duration: end, Steady: steady, Load: c.load}
	x.Rules = Rules{Limit: c.limit(), Window: c.window, Lease: c.lease, Jitter: 100 * time.Millisecond, Hold: hold, Drift: 0.001}
	x.Clocks = 0.0005
	return c.mean(func(seed uint64) cost {
		x.Seed = seed
		r := Run(x)
		return cost{100 * float64(x.Over(r.Answers)) / float64(x.Limit), x.Under(&r, r.Answers), float64(r.Grants) / end.Seconds()}
	})
}

func (c cell) strict() cost {
	steady, end := c.span()
	rule := quota.Rule{Algorithm: quota.SlidingWindow, Limit: float64(c.limit()), Window: c.window, Strict: true, Floor: 0.5}
	x := quotasim.Config{Pods: fleet, Rule: rule, Duration: end, Steady: steady, Load: quotasim.Load(c.load)}
	return c.mean(func(seed uint64) cost {
		x.Seed = seed
		r := quotasim.Run(x)
		return cost{r.Over, r.Under, float64(r.Records) / end.Seconds()}
	})
}

func (c cell) mean(run func(seed uint64) cost) cost {
	sum := cost{over: math.Inf(-1)}
	for seed := range c.seeds {
		r := run(seed + 1)
		sum.over = max(sum.over, r.over)
		sum.under += r.under / float64(c.seeds)
		sum.entries += r.entries / float64(c.seeds)
	}
	return sum
}

// least is what any scheme that never exceeds the limit and waits for nobody refuses, of what an exact limiter would
// admit of an even load of part of the limit, % (theorem 4): as many pods as there are units left can admit the next request.
func least(each, part float64) float64 {
	admitted := min(part, part*each/(1+part*each))
	return 100 * (1 - admitted/min(part, 1))
}

// leaseFor is what the tables use.
func leaseFor(window time.Duration) time.Duration {
	switch {
	case window >= time.Minute:
		return time.Second
	case window >= 10*time.Second:
		return 500 * time.Millisecond
	}
	return 250 * time.Millisecond
}

// row runs f for each shape of a load.
func row(c cell, part float64, f func(cell) cost) (over, under, entries string) {
	var o, u, e []string
	for _, load := range shapes(part * float64(c.limit()) / c.window.Seconds()) {
		c.load = load
		r := f(c)
		o, u, e = append(o, fmt.Sprintf("%.1f", r.over)), append(u, fmt.Sprintf("%.1f", r.under)), append(e, fmt.Sprintf("%.0f", r.entries))
	}
	return strings.Join(o, " / "), strings.Join(u, " / "), strings.Join(e, " / ")
}

func held(c cell) cost { return c.leases(UntilSettled) }

// TestLeasesPrice prints what leases cost next to today's Strict. Each cell is even / Zipf / hopping load.
func TestLeasesPrice(t *testing.T) {
	toRead(t)
	t.Log("| W | M/n | 0.7x, under: least | Strict | leases | 3x, over: Strict | leases | under: least | Strict | leases | records/s | grants/s |")
	for _, w := range []time.Duration{time.Second, 10 * time.Second, time.Minute} {
		for _, each := range []float64{0.5, 1, 4, 20, 100, 1000} {
			c := cell{window: w, lease: leaseFor(w), each: each, seeds: 3}
			_, below, _ := row(c, 0.7, cell.strict)
			_, belowHeld, _ := row(c, 0.7, held)
			over, above, records := row(c, 3, cell.strict)
			overHeld, aboveHeld, grants := row(c, 3, held)
			t.Logf("| %v | %v | %.0f | %s | %s | %s | %s | %.0f | %s | %s | %s | %s |", w, each, least(each, 0.7),
				below, belowHeld, over, overHeld, least(each, 3), above, aboveHeld, records, grants)
		}
	}
}

// TestLeasesLength prints what a lease's length costs, W = 1 s.
func TestLeasesLength(t *testing.T) {
	toRead(t)
	for _, each := range []float64{1, 4, 20, 1000} {
		line := fmt.Sprintf("| %v |", each)
		for _, ms := range []int{150, 250, 500, 1000} {
			c := cell{window: time.Second, lease: time.Duration(ms) * time.Millisecond, each: each, seeds: 3}
			_, below, _ := row(c, 0.7, held)
			_, above, _ := row(c, 3, held)
			line += fmt.Sprintf(" %s; %s |", below, above)
		}
		t.Log(line)
	}
}

// TestLeasesVariants prints what each variant costs, W = 1 s: what is safer costs next to nothing more while nothing fails.
func TestLeasesVariants(t *testing.T) {
	toRead(t)
	for _, each := range []float64{1, 20, 1000} {
		line := fmt.Sprintf("| %v |", each)
		for _, hold := range []Hold{UntilVoid, UntilWindow, UntilSettled} {
			run := func(c cell) cost { return c.leases(hold) }
			c := cell{window: time.Second, lease: leaseFor(time.Second), each: each, seeds: 3}
			_, below, _ := row(c, 0.7, run)
			over, above, _ := row(c, 3, run)
			line += fmt.Sprintf(" %s; %s; over %s |", below, above, over)
		}
		t.Log(line)
	}
}

// Where a fleet has units to spare leases cost little below the limit, and nowhere do they exceed it; where it has fewer units than
// pods no scheme of this kind can do better than least.
func TestWhatLeasesCost(t *testing.T) {
	for _, x := range []struct{ each, part, under float64 }{
		{20, 0.7, 10}, {100, 0.7, 4}, {20, 3, 20}, {100, 3, 20},
	} {
		c := cell{window: time.Second, lease: 250 * time.Millisecond, each: x.each, seeds: 1}
		for i, load := range shapes(x.part * float64(c.limit()))[:2] {
			c.load = load
			if r := held(c); r.over > 0 || r.under > x.under {
				t.Errorf("M/n %v, %v of the limit, shape %d: over %.1f %%, under %.1f %%", x.each, x.part, i, r.over, r.under)
			}
		}
	}
	for _, x := range []struct{ each, part float64 }{{0.5, 0.7}, {1, 0.7}, {0.5, 3}, {1, 3}} {
		c := cell{window: time.Second, lease: 250 * time.Millisecond, each: x.each, seeds: 3}
		c.load = shapes(x.part * float64(c.limit()))[0]
		if r, floor := held(c), least(x.each, x.part); r.under < floor-5 { // the floor is one of means
			t.Errorf("M/n %v, %v of the limit: under %.1f %%, which cannot be below %.1f %%", x.each, x.part, r.under, floor)
		}
	}
}
