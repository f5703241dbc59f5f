package load_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/weirproxy/weir/test/load"
)

// fakeTarget answers as told, and keeps what it was sent.
type fakeTarget struct {
	answer func(r *load.Request) (load.Answer, error)
	closed atomic.Bool

	mu    sync.Mutex
	paths map[string]int
}

func (f *fakeTarget) Do(_ context.Context, r *load.Request) (load.Answer, error) {
	f.mu.Lock()
	if f.paths == nil {
		f.paths = map[string]int{}
	}
	f.paths[r.Path]++
	f.mu.Unlock()
	return f.answer(r)
}

func (f *fakeTarget) Close() error {
	f.closed.Store(true)
	return nil
}

func always(status int) func(*load.Request) (load.Answer, error) {
	return func(*load.Request) (load.Answer, error) { return load.Answer{Status: status}, nil }
}

func start(t *testing.T, config load.Config) *load.Run {
	t.Helper()
	run, err := load.Start(config)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

func TestRunSendsWhatTheRateSaysAndCountsEachAnswer(t *testing.T) {
	defer goleak.VerifyNone(t)
	a := &fakeTarget{answer: always(200)}
	b := &fakeTarget{answer: func(r *load.Request) (load.Answer, error) {
		switch r.Path {
		case "/broken":
			return load.Answer{}, errors.New("broken pipe")
		case "/odd":
			return load.Answer{Status: 503}, nil
		}
		return load.Answer{Status: 429}, nil
	}}
	steps := load.Steps(load.Step{For: 100 * time.Millisecond, PerSecond: 1000}, load.Step{For: 100 * time.Millisecond, PerSecond: 3000})
	run := start(t, load.Config{
		Pods: []load.Pod{{Name: "a", Target: a}, {Name: "b", Target: b}},
		Sources: []load.Source{
			{Name: "both", Rate: steps, Request: load.Request{Path: "/"}},
			{Name: "broken", Rate: load.Constant(100), Request: load.Request{Path: "/broken"}, Pods: []string{"b"}},
			{Name: "odd", Rate: load.Constant(50), Request: load.Request{Path: "/odd"}, Pods: []string{"b"}},
			{Name: "odd", Rate: load.Constant(50), Request: load.Request{Path: "/even"}, Pods: []string{"a"}},
		},
		For:         200 * time.Millisecond,
		Outstanding: 1000,
	})
	result := run.Wait()

	both := result.Of("both")
	if both.Sent != 400 || both.Admitted != 200 || both.Denied != 200 || both.Unsent != 0 {
		t.Errorf("both: %+v", both)
	}
	if len(both.SentAt) != 200 || len(both.AnsweredAt) != 200 || both.Latency.Count() != 400 {
		t.Errorf("%d times sent, %d answered, %d latencies", len(both.SentAt), len(both.AnsweredAt), both.Latency.Count())
	}
	if broken := result.At("broken", "b"); broken.Errors != 20 || broken.LastError == nil || broken.Requests() != 20 {
		t.Errorf("broken: %+v", broken)
	}
	if odd := result.Of("odd"); odd.Other[503] != 10 || odd.Admitted != 10 {
		t.Errorf("odd: %+v", odd)
	}
	if on := result.On("a"); on.Sent != 210 || a.paths["/"] != 200 || a.paths["/even"] != 10 {
		t.Errorf("pod a: %+v, seen %v", on, a.paths)
	}
	if total := result.Total(); total.Sent != 440 {
		t.Errorf("total: %+v", total)
	}
	if got := fmt.Sprint(result.Sources()); got != "[both broken odd]" {
		t.Errorf("sources: %s", got)
	}
	if !a.closed.Load() || !b.closed.Load() {
		t.Error("a target was left open")
	}
}

func TestRunHoldsToItsBound(t *testing.T) {
	defer goleak.VerifyNone(t)
	const bound = 7
	release := make(chan struct{})
	var underWay, most atomic.Int64
	target := &fakeTarget{answer: func(*load.Request) (load.Answer, error) {
		n := underWay.Add(1)
		for seen := most.Load(); n > seen && !most.CompareAndSwap(seen, n); seen = most.Load() {
		}
		<-release
		underWay.Add(-1)
		return load.Answer{Status: 200}, nil
	}}
	run := start(t, load.Config{
		Pods:        []load.Pod{{Name: "a", Target: target}},
		Sources:     []load.Source{{Name: "s", Rate: load.Constant(1000)}},
		For:         100 * time.Millisecond,
		Outstanding: bound,
	})
	for run.Result().Total().Requests() < 100 {
		time.Sleep(time.Millisecond)
	}
	if now := run.Result().Total(); now.Sent != bound || now.Unsent != 100-bound || now.Admitted != 0 {
		t.Errorf("while nothing is answered: %+v", now)
	}
	close(release)
	if end := run.Wait().Total(); end.Admitted != bound || most.Load() != bound {
		t.Errorf("after the answers: %+v, %d at once", end, most.Load())
	}
}

func TestRunMakesEachRequestAndStopsWhenTold(t *testing.T) {
	defer goleak.VerifyNone(t)
	target := &fakeTarget{answer: always(200)}
	run := start(t, load.Config{
		Pods: []load.Pod{{Name: "a", Target: target}},
		Sources: []load.Source{{
			Name:    "flood",
			Rate:    load.Constant(2000),
			Poisson: true,
			Make:    func(k int) *load.Request { return &load.Request{Path: fmt.Sprint("/", k)} },
		}},
		Outstanding: 1000,
		Seed:        1,
	})
	for run.Result().Total().Sent < 50 {
		time.Sleep(time.Millisecond)
	}
	run.Stop()
	run.Stop()
	end := run.Wait().Total()
	if len(target.paths) != end.Sent || target.paths["/0"] != 1 || target.paths["/49"] != 1 {
		t.Errorf("%d requests sent, %d paths seen", end.Sent, len(target.paths))
	}
}

func TestStartRefusesWhatItCannotSend(t *testing.T) {
	pods := []load.Pod{{Name: "a", Target: &fakeTarget{}}}
	for name, config := range map[string]load.Config{
		"no pods":     {},
		"twin pods":   {Pods: append(pods, pods...)},
		"no rate":     {Pods: pods, Sources: []load.Source{{Name: "s"}}},
		"unknown pod": {Pods: pods, Sources: []load.Source{{Name: "s", Rate: load.Constant(1), Pods: []string{"b"}}}},
	} {
		if _, err := load.Start(config); err == nil {
			t.Errorf("%s: started", name)
		}
	}
}

func TestTallyWindowForgivesAStallOfThisMachine(t *testing.T) {
	tally := load.Tally{
		SentAt:     []int64{0, 500, 1000, 1500, 2000},
		AnsweredAt: []int64{1, 501, 2001, 2001, 2001},
	}
	if got := tally.MaxWindow(time.Second); got != 2 {
		t.Errorf("fullest window holds %d", got)
	}
	if got := tally.AdmittedBetween(500*time.Millisecond, 2*time.Second); got != 3 {
		t.Errorf("admitted between: %d", got)
	}
}
