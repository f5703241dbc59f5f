package procs

import (
	"context"
	"os"
	"runtime"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// look has the chooser see a load for a time, and returns how many it then uses.
func look(c *chooser, busy float64, length time.Duration) (n int) {
	for ; length > 0; length -= period {
		n = c.next(min(busy, float64(c.procs)), period)
	}
	return n
}

func TestACoreIsAddedWhereOneIsBusyAndGivenBackWhereItIsNot(t *testing.T) {
	c := &chooser{procs: 1, most: 4}
	for i, step := range []struct {
		busy   float64 // cores wanted
		length time.Duration
		want   int
	}{
		{0.1, time.Minute, 1},
		{0.7, time.Minute, 1},
		{0.9, period, 2},
		{0.9, time.Minute, 2}, // one less would be crowded again
		{3.9, time.Second, 4},
		{9, time.Minute, 4}, // no more than there are
		{0.3, calm - period, 4},
		{0.3, period, 3},
		{0.3, calm, 2},
		{0.3, calm, 1},
		{0.3, time.Hour, 1},
	} {
		if got := look(c, step.busy, step.length); got != step.want {
			t.Errorf("step %d: %d, want %d", i, got, step.want)
		}
	}
}

// A number that goes up and down would stop the world for nothing.
func TestASteadyLoadSettles(t *testing.T) {
	for busy := 0.0; busy < 4; busy += 0.05 {
		c := &chooser{procs: 1, most: 8}
		settled := look(c, busy, time.Minute)
		for range 1000 {
			if n := look(c, busy, period); n != settled {
				t.Fatalf("%.2f cores busy: %d, then %d", busy, settled, n)
			}
		}
	}
}

func TestTheEnvironmentDecides(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(before)
	t.Setenv("GOMAXPROCS", "2")
	if _, most := Start(); most != before || runtime.GOMAXPROCS(0) != before {
		t.Errorf("%d, at most %d; it was %d", runtime.GOMAXPROCS(0), most, before)
	}
}

func TestItBeginsWithOne(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	if before == 1 || !measurable {
		t.Skip("nothing to choose on this machine")
	}
	defer runtime.GOMAXPROCS(before)
	t.Setenv("GOMAXPROCS", "") // so that it is as it was afterwards
	if err := os.Unsetenv("GOMAXPROCS"); err != nil {
		t.Fatal(err)
	}
	run, most := Start()
	if most != before || runtime.GOMAXPROCS(0) != 1 {
		t.Errorf("%d, at most %d; want 1 and %d", runtime.GOMAXPROCS(0), most, before)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := run(ctx); err != nil {
		t.Error(err)
	}
}
