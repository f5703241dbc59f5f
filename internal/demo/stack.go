package demo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weirproxy/weir/internal/runner"
)

// stack runs parts that stand on each other: they end in the reverse order of their start, each before
// the one below it is asked to. Not safe for concurrent use.
type stack struct {
	parts  []*part
	failed chan error
}

type part struct {
	runner.Part
	cancel context.CancelFunc
	done   chan struct{}
}

func newStack() *stack { return &stack{failed: make(chan error, 1)} }

// start runs a part. If it ends by itself the stack has failed.
func (s *stack) start(name string, run func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	p := &part{runner.Part{Name: name, Run: run}, cancel, make(chan struct{})}
	s.parts = append(s.parts, p)
	go func() {
		defer close(p.done)
		err := run(ctx)
		if ctx.Err() != nil && (err == nil || errors.Is(err, context.Canceled)) {
			return
		}
		select {
		case s.failed <- fmt.Errorf("%s ended: %w", name, err):
		default:
		}
	}()
}

// stop ends all parts, waiting for each at most grace, and names those that would not end.
func (s *stack) stop(grace time.Duration) error {
	var errs []error
	for i := len(s.parts) - 1; i >= 0; i-- {
		p := s.parts[i]
		p.cancel()
		select {
		case <-p.done:
		case <-time.After(grace):
			errs = append(errs, fmt.Errorf("%s did not end within %s", p.Name, grace))
		}
	}
	s.parts = nil
	return errors.Join(errs...)
}
