package leases

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestFullestIsTheFullestOfAllWindows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		log := rapid.SliceOfN(rapid.IntRange(0, 5), 0, 60).Draw(t, "log")
		window := rapid.IntRange(1, 70).Draw(t, "window")
		want := 0
		for from := range log {
			n := 0
			for _, x := range log[from:min(from+window, len(log))] {
				n += x
			}
			want = max(want, n)
		}
		if got := Fullest(log, window); got != want {
			t.Fatalf("%d, by hand %d", got, want)
		}
	})
}

// The exact limiter never exceeds, and refuses only what would.
func TestExactIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := exact{limit: rapid.IntRange(1, 20).Draw(t, "limit"), window: rapid.IntRange(1, 20).Draw(t, "window")}
		for _, n := range rapid.SliceOfN(rapid.IntRange(0, 9), 1, 60).Draw(t, "offered") {
			took := e.take(n)
			if full := Fullest(e.log, e.window); full > e.limit || took < n && e.sum != e.limit {
				t.Fatalf("%d of %d admitted, the window %d of %d", took, n, full, e.limit)
			}
		}
	})
}

func TestUnder(t *testing.T) {
	c := Config{Steady: 2 * time.Millisecond}
	c.Window = 2 * time.Millisecond
	r := Result{Exact: []int{9, 4, 4, 4}}
	if got := c.Under(&r, []int{9, 3, 3, 3}); got != 25 {
		t.Errorf("%v %% under for 6 of 8 in each window", got)
	}
	if got := c.Under(&Result{}, nil); got != 0 {
		t.Errorf("%v %% of nothing", got)
	}
}
