package demo

import (
	"context"
	"errors"
	"math"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	// The library of Kafka keeps one goroutine of meters for ever.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/rcrowley/go-metrics.(*meterArbiter).tick"))
}

// everyOther admits, refuses and fails in turn, and ends the load after some requests.
type everyOther struct {
	n    atomic.Int64
	stop context.CancelFunc
}

func (e *everyOther) ask(context.Context) (bool, error) {
	n := e.n.Add(1)
	if n == 60 {
		e.stop()
	}
	if n%3 == 0 {
		return false, errors.New("no answer")
	}
	return n%3 == 1, nil
}

func TestTheLoadCountsEveryRequestOnce(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	a := &everyOther{stop: stop}
	l := &load{rate: 5000, shares: []float64{0.7, 0.3}, pods: []asker{a, a}, tally: &tally{}, inFlight: 8, start: time.Now()}
	l.run(ctx)
	failed, _ := l.tally.failures()
	events, total := l.tally.snapshot()
	if total.offered != len(events) || total.offered != total.admitted+total.refused {
		t.Errorf("%d answers counted as %+v", len(events), total)
	}
	if l.tally.offered != len(events) || int(a.n.Load()) > len(events)+failed {
		t.Errorf("offered %d, answered %d, failed %d, asked %d", l.tally.offered, len(events), failed, a.n.Load())
	}
}

// stuck answers only when the test is over.
type stuck struct {
	over  chan struct{}
	asked atomic.Int64
}

func (s *stuck) ask(context.Context) (bool, error) { s.asked.Add(1); <-s.over; return true, nil }

func TestTheLoadNeverWaitsAndItsRequestsAreBounded(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	s := &stuck{over: make(chan struct{})}
	l := &load{rate: 1e5, shares: []float64{1}, pods: []asker{s}, tally: &tally{}, inFlight: 4, start: time.Now()}
	ended := make(chan struct{})
	go func() { defer close(ended); l.run(ctx) }()
	for {
		if failed, err := l.tally.failures(); failed > 100 {
			if !errors.Is(err, errBusy) {
				t.Errorf("failed for %v", err)
			}
			break
		}
		time.Sleep(time.Millisecond)
	}
	if n := s.asked.Load(); n != 4 {
		t.Errorf("%d requests are under way at once, want 4", n)
	}
	stop()
	close(s.over)
	<-ended
}

func TestSharesAreUnevenAndWhole(t *testing.T) {
	for n := 1; n <= MaxPods; n++ {
		sum := 0.0
		for i, s := range sharesOf(n) {
			if sum += s; i > 0 && s >= sharesOf(n)[i-1] {
				t.Errorf("%d pods: share %d is no smaller than the one before", n, i)
			}
		}
		if math.Abs(sum-1) > 1e-9 {
			t.Errorf("%d pods: shares sum to %g", n, sum)
		}
	}
	if got := sharesOf(3); got[0] != 0.6 || got[1] != 0.3 || got[2] != 0.1 {
		t.Errorf("three pods: %v", got)
	}
}
