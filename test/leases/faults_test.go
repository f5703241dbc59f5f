package leases

import (
	"fmt"
	"testing"
	"time"

	"github.com/weirproxy/weir/internal/quota"
	"github.com/weirproxy/weir/internal/quota/quotasim"
)

// TestLeasesFaults prints, for each kind of fault alone, the part of random schedules in which each variant exceeded the limit and
// by how many units at most.
func TestLeasesFaults(t *testing.T) {
	toRead(t)
	stops := func(f Faults, process bool) (out []Stop) {
		for _, s := range f.Stops {
			s.Process = process
			out = append(out, s)
		}
		return out
	}
	kinds := []struct {
		name string
		keep func(f Faults) Faults
	}{
		{"none (delays with tails)", func(Faults) Faults { return Faults{} }},
		{"clocks drift", func(f Faults) Faults { return Faults{Clocks: f.Clocks} }},
		{"reports lost, acknowledgements lost", func(f Faults) Faults { return Faults{Loss: f.Loss, AckLoss: f.AckLoss} }},
		{"messages repeated, late", func(f Faults) Faults { return Faults{Duplicate: f.Duplicate, Redeliver: f.Redeliver, Late: f.Late} }},
		{"a pod cut off", func(f Faults) Faults { return Faults{Cuts: f.Cuts} }},
		{"a pod crashes", func(f Faults) Faults { return Faults{Crashes: f.Crashes} }},
		{"a check stops", func(f Faults) Faults { return Faults{Stops: stops(f, false)} }},
		{"a pod stops, within a check", func(f Faults) Faults { return Faults{Stops: stops(f, true)} }},
		{"the owner stops", func(f Faults) Faults { return Faults{OwnerStops: f.OwnerStops} }},
		{"the owner moves", func(f Faults) Faults { return Faults{Moves: f.Moves, Stamps: f.Stamps} }},
		{"all", func(f Faults) Faults { return f }},
	}
	n := schedules(500, 20_000)
	t.Logf("%d schedules a row: part of them beyond the limit, worst excess in units; by the clock, by the answer", n)
	for _, k := range kinds {
		line := "| " + k.name + " |"
		for _, hold := range []Hold{UntilVoid, UntilWindow, UntilSettled} {
			var clock, answer tally
			for seed := range n {
				c := Search(hold, 0, seeded(seed))
				c.Faults = k.keep(c.Faults)
				stamps, answers := excess(c)
				clock.add(stamps)
				answer.add(answers)
			}
			line += fmt.Sprintf(" %s, %s |", clock.of(n), answer.of(n))
		}
		t.Log(line)
	}
}

type tally struct {
	times uint64
	worst int
}

func (t *tally) add(excess int) {
	if excess > 0 {
		t.times++
		t.worst = max(t.worst, excess)
	}
}

func (t *tally) of(n uint64) string {
	if t.times == 0 {
		return "0"
	}
	return fmt.Sprintf("%.1f %% (%d)", 100*float64(t.times)/float64(n), t.worst)
}

// An outage begins at faultAt; what is lost is measured over measured from then on.
const (
	faultAt  = 10 * time.Second
	measured = 10 * time.Second
)

// outage is a run with a load that is even over the pods that serve.
func outage(hold Hold, part float64, f Faults) Config {
	c := Config{Pods: fleet, Duration: faultAt + measured, Faults: f}
	c.Rules = Rules{
		Limit: 100 * fleet, Window: time.Second, Lease: 250 * time.Millisecond, Jitter: 100 * time.Millisecond, Hold: hold,
		Drift: 0.001, StampError: 50 * time.Millisecond,
	}
	c.Clocks, c.Stamps = 0.0005, 50*time.Millisecond
	c.Load = func(pod int, t time.Duration) float64 {
		serving := fleet
		for i := range fleet {
			serving -= b2i(f.away(i, t))
		}
		return part * float64(c.Limit) / float64(serving) * float64(b2i(!f.away(pod, t)))
	}
	return c
}

// away says that pod serves nobody at t: what is in front of it sends elsewhere.
func (f *Faults) away(pod int, t time.Duration) bool {
	if t < faultAt {
		return false
	}
	for _, x := range f.Crashes {
		if x.Pod == pod && t >= x.At && (x.Back < 0 || t < x.At+x.Back) {
			return true
		}
	}
	for _, x := range f.Stops {
		if x.Pod == pod && t >= x.From && t < x.From+x.For {
			return true
		}
	}
	return false
}

// lost is what an exact limiter would have admitted from faultAt on and log does not hold, %.
func lost(log, exact []int) float64 {
	from := faultAt.Milliseconds()
	return 100 * (1 - sum(log[from:])/sum(exact[from:]))
}

func sum(log []int) (n float64) {
	for _, x := range log {
		n += float64(x)
	}
	return n
}

// TestLeasesOutages prints what an outage costs in the 10 s from its beginning, at 0.7 and at 3 times the limit.
func TestLeasesOutages(t *testing.T) {
	toRead(t)
	var five, gone []Crash
	for pod := range 5 {
		five = append(five, Crash{pod, faultAt, 2 * time.Second})
		gone = append(gone, Crash{pod, faultAt, -1})
	}
	stop := Stop{From: faultAt - 100*time.Millisecond, For: 5100 * time.Millisecond, Stage: Answering, Process: true}
	for _, x := range []struct {
		name string
		gap  time.Duration // without an owner
		f    Faults
	}{
		{"nothing", 0, Faults{}},
		{"the owner moves, 134 ms", 134 * time.Millisecond, Faults{}},
		{"the owner moves, 500 ms", 500 * time.Millisecond, Faults{}},
		{"the owner is killed, 6.3 s", 6300 * time.Millisecond, Faults{}},
		{"5 of 20 pods crash, back after 2 s", 0, Faults{Crashes: five}},
		{"5 of 20 pods crash for ever", 0, Faults{Crashes: gone}},
		{"1 pod stops within a check for 5 s", 0, Faults{Stops: []Stop{stop}}},
	} {
		line := "| " + x.name + " |"
		for _, part := range []float64{0.7, 3} {
			strict := "–"
			if len(x.f.Crashes)+len(x.f.Stops) == 0 {
				strict = strictOutage(part, x.gap)
			}
			line += " " + strict + " |"
			for _, hold := range []Hold{UntilWindow, UntilSettled} {
				f := x.f
				if x.gap > 0 {
					f.Moves = []Move{{At: faultAt, Gap: x.gap}}
				}
				c := outage(hold, part, f)
				line += fmt.Sprintf(" %.1f |", threeSeeds(func(seed uint64) float64 {
					c.Seed = seed
					r := Run(c)
					return lost(r.Answers, r.Exact)
				}))
			}
		}
		t.Log(line)
	}
}

func threeSeeds(run func(seed uint64) float64) (mean float64) {
	for seed := range uint64(3) {
		mean += run(seed+1) / 3
	}
	return mean
}

// strictOutage is the same of today's Strict, which quotasim can take the owner from, but no pods.
func strictOutage(part float64, gap time.Duration) string {
	c := outage(UntilSettled, part, Faults{})
	rule := quota.Rule{Algorithm: quota.SlidingWindow, Limit: float64(c.Limit), Window: c.Window, Strict: true, Floor: 0.5}
	return fmt.Sprintf("%.1f", threeSeeds(func(seed uint64) float64 {
		r := quotasim.Run(quotasim.Config{
			Pods: fleet, Rule: rule, Duration: c.Duration, Load: quotasim.Load(c.Load), Down: [2]time.Duration{faultAt, faultAt + gap}, Seed: seed,
		})
		return lost(r.Admitted, r.Exact)
	}))
}
