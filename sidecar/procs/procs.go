// Package procs keeps the number of threads that run Go code at once at what the load needs: one, until a core is busy.
//
// A check is a few microseconds of work between two system calls. With several threads the Go runtime wakes a second one
// for each that comes in, which looks for work, finds none, and sleeps again: a good part of what the check itself costs.
// docs/design/check-server.md says more. What the environment sets (GOMAXPROCS) is left as it is.
package procs

import (
	"context"
	"os"
	"runtime"
	"time"
)

const (
	period = 250 * time.Millisecond // between two looks: how long a rising load waits for another core
	calm   = 10 * time.Second       // a falling load, until a core is given back

	crowded = 0.75 // of the cores in use: one more
	roomy   = 0.5  // of the cores that one less would leave: give one back
)

// Start begins with one thread, and returns what adapts it until its context ends, and the most that it will use: what the
// runtime chose from the machine and the control group. Call it once, before the load comes.
func Start() (run func(context.Context) error, most int) {
	most = runtime.GOMAXPROCS(0)
	if _, set := os.LookupEnv("GOMAXPROCS"); set || most == 1 || !measurable {
		return idle, most
	}
	runtime.GOMAXPROCS(1)
	return func(ctx context.Context) error { return adapt(ctx, most) }, most
}

func idle(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

func adapt(ctx context.Context, most int) error {
	tick := time.NewTicker(period)
	defer tick.Stop()
	c := chooser{procs: 1, most: most}
	used, at := cpuTime(), time.Now()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		now, total := time.Now(), cpuTime()
		if n := c.next(float64(total-used)/float64(now.Sub(at)), now.Sub(at)); n != runtime.GOMAXPROCS(0) {
			runtime.GOMAXPROCS(n)
		}
		used, at = total, now
	}
}

// chooser decides on the number. It has no clock.
type chooser struct {
	procs, most int
	quiet       time.Duration // how long one less would have done
}

// next takes how many cores were busy over a time, and returns how many to use from now on.
func (c *chooser) next(busy float64, over time.Duration) int {
	switch {
	case busy > crowded*float64(c.procs):
		c.procs, c.quiet = min(c.procs+1, c.most), 0
	case c.procs > 1 && busy < roomy*float64(c.procs-1):
		if c.quiet += over; c.quiet >= calm {
			c.procs, c.quiet = c.procs-1, 0
		}
	default:
		c.quiet = 0
	}
	return c.procs
}
