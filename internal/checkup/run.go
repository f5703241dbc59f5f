package checkup

import (
	"context"
	"time"
)

// Check looks at one thing. It returns what it found before ctx ends, or soon after: a finding at least, unless there
// is nothing to be said.
type Check interface {
	Run(ctx context.Context) []Finding
}

// Func is a function as a Check.
type Func func(ctx context.Context) []Finding

// Run implements Check.
func (f Func) Run(ctx context.Context) []Finding { return f(ctx) }

// Named is a check with the name that its findings carry, such as kafka.topics: stable, since scripts know it.
type Named struct {
	Name string
	Check
}

// Run runs checks one after the other, in their order, each for at most the time given. A check that was not begun
// before ctx ended is skipped.
func Run(ctx context.Context, checks []Named, each time.Duration) *Report {
	r := &Report{Findings: []Finding{}}
	for _, c := range checks {
		if ctx.Err() != nil {
			r.add(c.Name, Skip("", "not begun: interrupted"))
			continue
		}
		bounded, cancel := context.WithTimeout(ctx, each)
		r.add(c.Name, c.Check.Run(bounded)...)
		cancel()
	}
	return r
}
