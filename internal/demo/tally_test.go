package demo

import (
	"errors"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

const ms = time.Millisecond

func genEvents(t *rapid.T) []event {
	events := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) event {
		return event{
			at:       time.Duration(rapid.IntRange(0, 3000).Draw(t, "at")) * ms,
			pod:      rapid.IntRange(0, 2).Draw(t, "pod"),
			admitted: rapid.Bool().Draw(t, "admitted"),
		}
	}), 0, 200).Draw(t, "events")
	slices.SortStableFunc(events, func(a, b event) int { return int(a.at - b.at) })
	return events
}

// naiveWindow counts (t-window, t] for every t anew.
func naiveWindow(events []event, window time.Duration, t time.Duration) (n int) {
	for _, e := range events {
		if e.admitted && e.at > t-window && e.at <= t {
			n++
		}
	}
	return n
}

func TestWorstWindowIsTheFullestOfAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		events := genEvents(t)
		want := 0
		for _, e := range events {
			want = max(want, naiveWindow(events, time.Second, e.at))
		}
		if got := worstWindow(events, time.Second); got != want {
			t.Fatalf("worstWindow = %d, want %d", got, want)
		}
	})
}

func TestFilledAtIsTheFirstMomentTheWindowIsFull(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		events := genEvents(t)
		limit := rapid.IntRange(1, 20).Draw(t, "limit")
		got, ok := filledAt(events, limit, time.Second)
		for _, e := range events {
			if naiveWindow(events, time.Second, e.at) >= limit {
				if !ok || got != e.at {
					t.Fatalf("filledAt = %v, %v; want %v", got, ok, e.at)
				}
				return
			}
		}
		if ok {
			t.Fatalf("filledAt = %v, but no window is ever full", got)
		}
	})
}

func TestEnforcedWaitsForTheLastPod(t *testing.T) {
	events := []event{{10 * ms, 0, true}, {20 * ms, 1, true}, {25 * ms, 0, false}, {40 * ms, 1, true}, {70 * ms, 1, false}}
	if got, ok := enforced(events, 2, time.Second, 2); got != 50*ms || !ok {
		t.Errorf("enforced = %v, %v; want 50ms after the second admission", got, ok)
	}
	if _, ok := enforced(events[:4], 2, time.Second, 2); ok {
		t.Error("a pod that never refused is taken as enforcing")
	}
	if _, ok := enforced(events, 9, time.Second, 2); ok {
		t.Error("a window that never filled has an enforcement time")
	}
}

func TestTallyConservesWhatWasAnswered(t *testing.T) {
	var c tally
	c.offer()
	c.answer(event{5 * ms, 0, true})
	c.offer()
	c.answer(event{1500 * ms, 1, false})
	c.offer()
	c.fail(errors.New("no answer"))
	each, all := c.since(time.Second, 2)
	if all != (counts{1, 0, 1}) || each[1] != all || each[0] != (counts{}) {
		t.Errorf("since 1s: %+v %+v", each, all)
	}
	if failed, err := c.failures(); failed != 1 || err == nil || c.offered != 2 {
		t.Errorf("failed %d (%v), offered %d", failed, err, c.offered)
	}
}

func TestPercentile(t *testing.T) {
	var v []time.Duration
	for i := range 100 {
		v = append(v, time.Duration(100-i)*ms)
	}
	if got := percentile(v, 0.99); got != 100*ms {
		t.Errorf("p99 = %v", got)
	}
	if got := percentile(v, 0.5); got != 51*ms {
		t.Errorf("p50 = %v", got)
	}
	if percentile(nil, 0.99) != 0 {
		t.Error("p99 of nothing")
	}
}
