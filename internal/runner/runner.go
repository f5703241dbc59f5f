// Package runner runs a program's parts: each is a name and a Run(ctx) error. They start together and
// end together, by a signal, by the end of a context or by the first part that fails, within a
// deadline.
package runner

import (
	"context"
	"errors"
	"fmt"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// Part is something that runs until its context ends. Run returns nil, or the context's own error,
// where it was asked to end; any other error ends the program. A Run that returns nil early has done
// its work and ends nothing.
type Part struct {
	Name string
	Run  func(ctx context.Context) error
}

// SignalContext ends with SIGTERM or SIGINT. A second signal kills the process, as signals do, since
// someone who asks twice does not want to wait. stop releases the handler.
func SignalContext(parent context.Context) (ctx context.Context, stop context.CancelFunc) {
	ctx, cancel := signal.NotifyContext(parent, syscall.SIGTERM, syscall.SIGINT)
	context.AfterFunc(ctx, cancel)
	return ctx, cancel
}

// Run starts every part on a goroutine of its own and returns when all have returned: nil where ctx
// ended it or all parts finished, else the first failure with its part's name. Once one fails or ctx
// ends, the others have the grace period (0: for ever) to return; those that have not are named in the
// error and left behind, since the process is about to end.
func Run(ctx context.Context, grace time.Duration, parts ...Part) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	results := start(ctx, parts)

	g := group{running: names(parts)}
	var late <-chan time.Time
	asked := ctx.Done()
	for len(g.running) > 0 {
		select {
		case r := <-results:
			if g.done(r) {
				cancel()
			}
		case <-asked:
			asked = nil
			if grace > 0 {
				timer := time.NewTimer(grace)
				defer timer.Stop()
				late = timer.C
			}
		case <-late:
			return errors.Join(g.first, fmt.Errorf("still running %s after being asked to end: %s",
				grace, strings.Join(g.running, ", ")))
		}
	}
	return g.first
}

type result struct {
	name string
	err  error
}

// start's channel holds every result, so that a part left behind never blocks on it.
func start(ctx context.Context, parts []Part) <-chan result {
	results := make(chan result, len(parts))
	for _, p := range parts {
		go func() { results <- result{p.Name, p.Run(ctx)} }()
	}
	return results
}

type group struct {
	running []string
	first   error
}

// done notes a part's end and reports whether it is a failure.
func (g *group) done(r result) bool {
	for i, name := range g.running {
		if name == r.name {
			g.running = append(g.running[:i], g.running[i+1:]...)
			break
		}
	}
	if r.err == nil || errors.Is(r.err, context.Canceled) {
		return false
	}
	if g.first == nil {
		g.first = fmt.Errorf("%s: %w", r.name, r.err)
	}
	return true
}

func names(parts []Part) []string {
	out := make([]string, len(parts))
	for i, p := range parts {
		out[i] = p.Name
	}
	return out
}
