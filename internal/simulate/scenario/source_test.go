package scenario_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weirproxy/weir/internal/simulate/scenario"
)

const ms = time.Millisecond

func TestARateIsAStepFunctionThatMayRepeat(t *testing.T) {
	once := scenario.Source{Rate: []scenario.Step{{At: 0, Value: 5}, {At: 100 * ms, Value: 7}, {At: 200 * ms, Value: 7}, {At: 300 * ms, Value: 0}}}
	square := scenario.Source{Repeat: 2 * time.Second, Rate: []scenario.Step{{At: 0, Value: 500}, {At: time.Second, Value: 5000}}}
	for _, c := range []struct {
		s     *scenario.Source
		t     time.Duration
		at    float64
		next  time.Duration
		again bool
	}{
		{&once, -ms, 0, 0, true},
		{&once, 0, 5, 100 * ms, true},
		{&once, 99 * ms, 5, 100 * ms, true},
		{&once, 100 * ms, 7, 300 * ms, true},
		{&once, 250 * ms, 7, 300 * ms, true},
		{&once, 300 * ms, 0, 0, false},
		{&once, time.Hour, 0, 0, false},
		{&square, 0, 500, time.Second, true},
		{&square, time.Second, 5000, 2 * time.Second, true},
		{&square, 2 * time.Second, 500, 3 * time.Second, true},
		{&square, 7999 * ms, 5000, 8 * time.Second, true},
	} {
		if got := c.s.At(c.t); got != c.at {
			t.Errorf("At(%v) = %v, want %v", c.t, got, c.at)
		}
		if next, again := c.s.NextChange(c.t); next != c.next || again != c.again {
			t.Errorf("NextChange(%v) = %v %v, want %v %v", c.t, next, again, c.next, c.again)
		}
	}
	flat := scenario.Source{Repeat: time.Second, Rate: []scenario.Step{{At: 0, Value: 5}, {At: 500 * ms, Value: 5}}}
	if next, again := flat.NextChange(0); again {
		t.Errorf("a rate that is always the same changes at %v", next)
	}
	wraps := scenario.Source{Repeat: time.Second, Rate: []scenario.Step{{At: 0, Value: 5}, {At: 500 * ms, Value: 6}, {At: 700 * ms, Value: 5}}}
	if next, _ := wraps.NextChange(700 * ms); next != 1500*ms {
		t.Errorf("over the end of a round: %v, want 1.5s", next)
	}
}

// Walking from change to change meets every value, and nothing changes between.
func TestChangesAreAllThereAre(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawRate(t)
		const end = 300
		now := time.Duration(0)
		for now < end {
			next, ok := s.NextChange(now)
			if ok && next <= now {
				t.Fatalf("the change after %d is at %d", now, next)
			}
			until := next
			if !ok {
				until = end
			}
			for x := now; x < min(until, end); x++ {
				if s.At(x) != s.At(now) {
					t.Fatalf("another rate at %d, the next change after %d was %d", x, now, until)
				}
			}
			if ok && s.At(next) == s.At(now) {
				t.Fatalf("no change at %d", next)
			}
			now = until
		}
	})
}

// drawRate draws a rate whose times are a few nanoseconds, so that all of them can be looked at.
func drawRate(t *rapid.T) *scenario.Source {
	s := &scenario.Source{}
	at := time.Duration(0)
	for i := range rapid.IntRange(1, 5).Draw(t, "steps") {
		if i > 0 {
			at += time.Duration(rapid.IntRange(1, 40).Draw(t, "gap"))
		}
		s.Rate = append(s.Rate, scenario.Step{At: at, Value: float64(rapid.IntRange(0, 2).Draw(t, "value"))})
	}
	if rapid.Bool().Draw(t, "repeats") {
		s.Repeat = at + time.Duration(rapid.IntRange(1, 40).Draw(t, "rest"))
	}
	return s
}

func TestRequestsAreTheRateIntegrated(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawRate(t)
		end := time.Duration(rapid.IntRange(0, 300).Draw(t, "end"))
		want := 0.0
		for x := range end {
			want += s.At(x) * 1e-9
		}
		if got := s.Requests(end); math.Abs(got-want) > 1e-12 {
			t.Fatalf("%g, want %g", got, want)
		}
	})
}

func TestZipfWeights(t *testing.T) {
	if got := scenario.Zipf(3, 0); !slices.Equal(got, []float64{1, 1, 1}) {
		t.Error(got)
	}
	if got := scenario.Zipf(4, 1); !slices.Equal(got, []float64{1, 0.5, 1. / 3, 0.25}) {
		t.Error(got)
	}
}

func TestClientsHaveNames(t *testing.T) {
	for _, c := range []struct {
		client  string
		clients int
		i       int
		want    string
	}{
		{"acme", 0, 0, "acme"},
		{"acme", 3, 2, "acme-2"},
		{"10.0.0.0", 0, 0, "10.0.0.0"},
		{"10.0.0.250", 1000, 10, "10.0.1.4"},
		{"10.255.255.255", 2, 1, "11.0.0.0"},
		{"255.255.255.255", 2, 1, "0.0.0.0"},
		{"2001:db8::ffff", 2, 1, "2001:db8::1:0"},
	} {
		s := scenario.Source{Client: c.client, Clients: c.clients}
		if got := s.ClientName(c.i); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}
