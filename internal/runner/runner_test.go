package runner

import (
	"context"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errBroken = errors.New("broken")

func untilEnd(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }

func TestFirstFailureEndsAllAndIsNamed(t *testing.T) {
	ended := make(chan struct{})
	err := Run(t.Context(), time.Minute,
		Part{"patient", func(ctx context.Context) error { defer close(ended); return untilEnd(ctx) }},
		Part{"fragile", func(context.Context) error { return errBroken }})
	if !errors.Is(err, errBroken) || !strings.Contains(err.Error(), "fragile: ") {
		t.Errorf("Run = %v, want fragile's error by name", err)
	}
	<-ended
}

func TestEndOfContextIsNoFailure(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	err := Run(ctx, time.Minute, Part{"a", untilEnd},
		Part{"b", func(ctx context.Context) error { cancel(); return untilEnd(ctx) }})
	if err != nil {
		t.Errorf("Run = %v", err)
	}
}

func TestAPartThatFinishesEndsNothing(t *testing.T) {
	finished := make(chan struct{})
	sawIt := false
	err := Run(t.Context(), time.Minute,
		Part{"once", func(context.Context) error { close(finished); return nil }},
		Part{"long", func(ctx context.Context) error { <-finished; sawIt = ctx.Err() == nil; return nil }})
	if err != nil || !sawIt {
		t.Errorf("Run = %v, the other part went on: %v", err, sawIt)
	}
}

func TestAPartThatWillNotEndIsNamedAndLeft(t *testing.T) {
	release := make(chan struct{})
	gone := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := Run(ctx, time.Millisecond, Part{"polite", untilEnd},
		Part{"stubborn", func(context.Context) error { defer close(gone); <-release; return nil }})
	if err == nil || !strings.Contains(err.Error(), "stubborn") || strings.Contains(err.Error(), "polite") {
		t.Errorf("Run = %v, want stubborn alone named", err)
	}
	close(release)
	<-gone
}

func TestSIGTERMEndsTheContext(t *testing.T) {
	ctx, stop := SignalContext(t.Context())
	defer stop()
	if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-ctx.Done()
}
