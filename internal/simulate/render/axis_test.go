package render

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestAxesHaveRoundSteps(t *testing.T) {
	for _, tt := range []struct {
		highest float64
		most    int
		top     string // its label
		steps   int
	}{
		{3060, 6, "4,000", 4}, {1000, 5, "1,000", 5}, {101, 14, "110", 11}, {0.42, 6, "0.5", 5},
		{1.2, 6, "1.2", 6}, {1_200_000, 6, "1,200,000", 6}, {0, 6, "1.0", 5}, {0.0031, 8, "0.0035", 7},
	} {
		a := newAxis(tt.highest, tt.most)
		if a.steps() != tt.steps || a.label(a.steps()) != tt.top {
			t.Errorf("up to %v: %d steps to %s, want %d to %s", tt.highest, a.steps(), a.label(a.steps()), tt.steps, tt.top)
		}
	}
}

func TestAxesReachTheHighestInFewSteps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		highest := math.Pow(10, rapid.Float64Range(-9, 15).Draw(t, "exponent"))
		most := rapid.IntRange(1, 20).Draw(t, "most")
		a := newAxis(highest, most)
		if a.top < highest*(1-1e-9) || a.steps() > most {
			t.Errorf("up to %v in %d: %+v, %d steps", highest, most, a, a.steps())
		}
	})
}

func TestClocksHaveRoundTimes(t *testing.T) {
	for _, tt := range []struct {
		seconds float64
		unit    string
		labels  []string
	}{
		{19.9999998, "s", []string{"0", "5", "10", "15", "20"}},
		{0.9, "s", []string{"0.0", "0.2", "0.4", "0.6", "0.8"}},
		{90, "s", []string{"0", "15", "30", "45", "60", "75", "90"}},
		{600, "min", []string{"0", "2", "4", "6", "8", "10"}},
		{86400, "h", []string{"0", "3", "6", "9", "12", "15", "18", "21", "24"}},
		{86400 * 35, "days", []string{"0", "5", "10", "15", "20", "25", "30", "35"}},
		{0, "s", nil},
	} {
		c := newClock(tt.seconds, 8)
		var labels []string
		for _, tick := range c.ticks() {
			labels = append(labels, c.label(tick))
		}
		if c.unit != tt.unit || !slices.Equal(labels, tt.labels) {
			t.Errorf("%v s: %s %v, want %s %v", tt.seconds, c.unit, labels, tt.unit, tt.labels)
		}
	}
}
