package agent

import (
	"context"
	"errors"
	"testing"
)

// Whoever asks may go before the answer: what the control goroutine finds afterwards is nobody's memory. The
// race detector is what fails here.
func TestAnAskerThatGoesSharesNothing(t *testing.T) {
	d, _ := begun(t, each100)
	d.passes("acme", 1)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() { // the control goroutine
		defer close(stopped)
		for {
			select {
			case event := <-d.events:
				event()
			case <-stop:
				return
			}
		}
	}()
	for range 200 {
		ctx, cancel := context.WithCancel(context.Background())
		go cancel()
		decisions, err := d.Decisions(ctx)
		if err == nil && len(decisions) == 0 {
			t.Error("no decision although there is no error")
		}
		counters, err := d.Counters(ctx, "", 10)
		if err == nil && counters.Total != 1 {
			t.Errorf("%+v", counters)
		}
		if policies, err := d.Policies(ctx); err == nil && !policies.Read {
			t.Errorf("%+v", policies)
		}
	}
	close(stop)
	<-stopped
}

func TestAQuestionAfterTheEndIsAnswered(t *testing.T) {
	d := newDesk(t)
	ended, end := context.WithCancel(context.Background())
	end()
	if err := d.Run(ended); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := d.Decisions(context.Background()); !errors.Is(err, ErrStopped) {
			t.Errorf("asked after the end: %v", err)
		}
	}
}
