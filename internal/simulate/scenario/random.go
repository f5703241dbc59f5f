package scenario

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weirproxy/weir/api/v1alpha1"
)

// Bounds of random scenarios.
const (
	randomEnd      = 30 * time.Second
	randomRequests = 380_000 // a run, on average
)

// Random is n scenarios drawn with a seed, r001 and so on: the same for the same seed, and the first ones the same for
// any n. Of each, one rate, one source of traffic in square waves or steps that is now below the rate and now far
// above, usual periods of the fleet, no faults; below 400,000 requests a run.
func Random(seed uint64, n int) []*Scenario {
	out := make([]*Scenario, n)
	for i := range out {
		d := drawer{rand.New(rand.NewPCG(seed, uint64(i)))} //nolint:gosec // no secret, and i is from 0
		out[i] = d.scenario(fmt.Sprintf("r%03d", i+1))
	}
	return out
}

type drawer struct{ *rand.Rand }

func (d drawer) scenario(name string) *Scenario {
	f := defaults()
	f.Name, f.Pods, f.Seed = name, int(d.log(2, 300)), uint64(d.IntN(1_000_000_000)) //nolint:gosec // positive
	window := tenths(d.between(1, 10), time.Second)
	f.Duration = min(randomEnd, tenths(window.Seconds()*d.between(6, 10), time.Second))
	f.SteadyFrom = max(window, f.Duration/4)
	f.Network = network{Uplink: d.delay(), Downlink: d.delay(), Tail: tail{rounded(d.between(0, 0.02), 2), tenths(d.between(20, 150), time.Millisecond)}}
	s, shape := d.source(window, f.Duration)
	limit := d.amount(&s, window, f.Duration)
	f.Traffic = []Source{s}
	f.Rate = &v1alpha1.Rate{Limit: limit, Window: &v1alpha1.Duration{Duration: window}}
	f.Policy = ofRate(*f.Rate)
	(&checker{}).failure(f.Policy, &f.Timing)
	f.Title = fmt.Sprintf("%d pods, %d in %s, %s", f.Pods, limit, short(window), shape)
	return f.scenario()
}

// source draws traffic in multiples of the rate, and says what it is.
func (d drawer) source(window, end time.Duration) (Source, string) {
	s := Source{Skew: rounded(d.between(0, 1.3), 2)}
	var shape string
	if d.IntN(2) == 0 {
		shape = d.square(&s, window, end)
	} else {
		shape = d.steps(&s, end)
	}
	if d.IntN(4) == 0 {
		s.Batch = 2 + d.IntN(19)
		shape += fmt.Sprintf(", batches of %d", s.Batch)
	}
	return s, shape + fmt.Sprintf(", Zipf %g", s.Skew)
}

// square draws a low and a high that alternate; at least two periods of them are in the run.
func (d drawer) square(s *Source, window, end time.Duration) string {
	low, high := d.low(), d.high()
	s.Repeat = min(tenths(window.Seconds()*d.between(1, 5), time.Second), end/2)
	s.Rate = []Step{{0, low}, {s.Repeat / 2, high}}
	return fmt.Sprintf("square wave %gx / %gx each %s", low, high, short(s.Repeat))
}

// steps draws rates that hold until the next one, low and high by turns or not.
func (d drawer) steps(s *Source, end time.Duration) string {
	s.Rate = []Step{{0, d.low()}}
	for range 2 + d.IntN(4) {
		value := d.high()
		if d.IntN(2) == 0 {
			value = d.low()
		}
		s.Rate = append(s.Rate, Step{tenths(end.Seconds()*d.between(0.05, 0.95), time.Second), value})
	}
	slices.SortStableFunc(s.Rate, func(a, b Step) int { return cmp.Compare(a.At, b.At) })
	s.Rate = slices.CompactFunc(s.Rate, func(a, b Step) bool { return a.At == b.At })
	texts := make([]string, len(s.Rate))
	for i := range s.Rate {
		texts[i] = fmt.Sprintf("%gx", s.Rate[i].Value)
	}
	return "steps " + strings.Join(texts, " ")
}

func (d drawer) low() float64  { return rounded(d.between(0.2, 0.9), 2) }
func (d drawer) high() float64 { return rounded(d.log(1.2, 15), 2) }

// amount draws a limit, lower where a run would be too long with it, and turns the traffic's multiples of the rate into
// requests/s.
func (d drawer) amount(s *Source, window, end time.Duration) int64 {
	limit := math.Round(d.log(20, 10_000))
	limit = min(limit, math.Floor(randomRequests*window.Seconds()/s.Requests(end)))
	for i := range s.Rate {
		s.Rate[i].Value = rounded(s.Rate[i].Value*limit/window.Seconds(), 3)
	}
	return int64(limit)
}

func (d drawer) delay() Delay {
	low := d.between(3, 15)
	return Delay{tenths(low, time.Millisecond), tenths(d.between(low, 25), time.Millisecond)}
}

func (d drawer) between(low, high float64) float64 { return low + (high-low)*d.Float64() }

// log draws so that each doubling is as likely.
func (d drawer) log(low, high float64) float64 {
	return math.Exp(d.between(math.Log(low), math.Log(high)))
}

// tenths is v units, to a tenth.
func tenths(v float64, unit time.Duration) time.Duration {
	return time.Duration(math.Round(v*10)) * (unit / 10)
}

// rounded keeps some significant digits, so that a scenario can be read.
func rounded(v float64, digits int) float64 {
	out, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'g', digits, 64), 64)
	return out
}
