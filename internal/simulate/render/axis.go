package render

import (
	"math"
	"strconv"
	"strings"
)

// axis goes from 0 to top in steps of 1, 2 or 5 times a power of ten.
type axis struct{ step, top float64 }

// newAxis has the smallest round step of which at most most reach highest.
func newAxis(highest float64, most int) axis {
	if highest <= 0 {
		highest = 1
	}
	step := math.Pow(10, math.Floor(math.Log10(highest/float64(most))))
	for _, by := range []float64{1, 2, 5, 10} {
		if n := steps(highest, step*by); n <= most {
			return axis{step * by, step * by * float64(n)}
		}
	}
	return axis{step * 20, step * 20 * float64(most)}
}

// steps to reach v, without one more for a rounding error.
func steps(v, step float64) int { return max(int(math.Ceil(v/step-1e-9)), 1) }

// steps of the axis.
func (a axis) steps() int { return steps(a.top, a.step) }

// label is a tick's value as the axis shows it.
func (a axis) label(i int) string { return number(float64(i)*a.step, decimals(a.step)) }

// decimals that a multiple of step needs.
func decimals(step float64) int {
	return min(max(int(-math.Floor(math.Log10(step)+1e-9)), 0), 9)
}

// number writes v with thousands apart.
func number(v float64, decimals int) string {
	s := strconv.FormatFloat(v, 'f', decimals, 64)
	whole, fraction, _ := strings.Cut(s, ".")
	sign := ""
	if strings.HasPrefix(whole, "-") {
		sign, whole = "-", whole[1:]
	}
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if fraction != "" {
		whole += "." + fraction
	}
	return sign + whole
}

// clock is the axis of time: in the unit that a person would choose, with ticks at round times of it.
type clock struct {
	unit      string
	per       float64 // seconds of a unit
	end, step float64 // in the unit
	decimals  int
}

// newClock has at most most ticks after 0 over so many seconds.
func newClock(seconds float64, most int) clock {
	c := clock{unit: "days", per: 86400}
	var rounds []float64
	for _, u := range []struct {
		name      string
		per, upTo float64 // seconds
		rounds    []float64
	}{
		{"s", 1, 150, []float64{1, 2, 5, 10, 15, 30}},
		{"min", 60, 9000, []float64{1, 2, 5, 10, 15, 30}},
		{"h", 3600, 3 * 86400, []float64{1, 2, 3, 6, 12}},
	} {
		if seconds <= u.upTo {
			c.unit, c.per, rounds = u.name, u.per, u.rounds
			break
		}
	}
	c.end = seconds / c.per
	c.step = newAxis(c.end, most).step
	for _, r := range rounds {
		if c.step >= 1 && c.end <= r*float64(most) {
			c.step = r
			break
		}
	}
	c.decimals = decimals(c.step)
	return c
}

// ticks are the multiples of the step up to the end.
func (c clock) ticks() []float64 {
	var out []float64
	if c.end <= 0 {
		return out
	}
	for i := 0; float64(i)*c.step <= c.end+c.step/1000; i++ {
		out = append(out, float64(i)*c.step)
	}
	return out
}

// label is a tick as the axis shows it.
func (c clock) label(tick float64) string { return number(tick, c.decimals) }

// moment writes a time.
func (c clock) moment(seconds float64) string {
	return number(seconds/c.per, c.decimals+2) + " " + c.unit
}
