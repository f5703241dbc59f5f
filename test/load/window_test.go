package load_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/weirproxy/weir/test/load"
)

func TestMaxWindow(t *testing.T) {
	for _, test := range []struct {
		name  string
		times []int64
		w     int64
		want  int
	}{
		{"nothing", nil, 1000, 0},
		{"one", []int64{5}, 1, 1},
		{"exactly a window apart", []int64{0, 1000}, 1000, 1},
		{"just within a window", []int64{0, 999}, 1000, 2},
		{"all at once", []int64{7, 7, 7}, 1, 3},
		{"a burst over a boundary", []int64{900, 950, 1000, 1050, 2500}, 1000, 4},
		{"out of order", []int64{2500, 1050, 900, 1000, 950}, 1000, 4},
		{"before the start", []int64{-10, -5, 0}, 6, 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := load.MaxWindow(test.times, test.w); got != test.want {
				t.Errorf("MaxWindow(%v, %d) = %d, want %d", test.times, test.w, got, test.want)
			}
		})
	}
}

var (
	someTimes = rapid.SliceOfN(rapid.Int64Range(-100, 100), 0, 40)
	someWidth = rapid.Int64Range(1, 80)
)

// Some fullest window begins at an event, so trying each event's window is a
// complete search.
func bruteMaxWindow(times []int64, w int64) int {
	most := 0
	for _, start := range times {
		most = max(most, load.CountBetween(times, start, start+w))
	}
	return most
}

func TestMaxWindowIsTheFullestOfAllWindows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		times, w := someTimes.Draw(t, "times"), someWidth.Draw(t, "w")
		got := load.MaxWindow(times, w)
		if want := bruteMaxWindow(times, w); got != want {
			t.Fatalf("MaxWindow = %d, brute force %d", got, want)
		}
		start := rapid.Int64Range(-200, 200).Draw(t, "start")
		if n := load.CountBetween(times, start, start+w); n > got {
			t.Fatalf("the window at %d holds %d, more than %d", start, n, got)
		}
	})
}

func TestMaxWindowDoesNotDependOnOrderOrOrigin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		times, w := someTimes.Draw(t, "times"), someWidth.Draw(t, "w")
		want := load.MaxWindow(times, w)
		given := slices.Clone(times)
		shifted := slices.Clone(times)
		by := rapid.Int64Range(-1000, 1000).Draw(t, "by")
		for i := range shifted {
			shifted[i] += by
		}
		slices.Reverse(shifted)
		if got := load.MaxWindow(shifted, w); got != want {
			t.Fatalf("moved by %d and reversed: %d, want %d", by, got, want)
		}
		if !slices.Equal(times, given) {
			t.Fatal("the argument was changed")
		}
	})
}

func TestMaxWindowGrowsWithWidthAndEvents(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		times, w := someTimes.Draw(t, "times"), someWidth.Draw(t, "w")
		n := load.MaxWindow(times, w)
		if wider := load.MaxWindow(times, w+1); wider < n {
			t.Fatalf("a wider window holds %d, fewer than %d", wider, n)
		}
		more := append(slices.Clone(times), rapid.Int64Range(-100, 100).Draw(t, "another"))
		if m := load.MaxWindow(more, w); m < n || m > n+1 {
			t.Fatalf("one event more made %d of %d", m, n)
		}
		if n2 := load.MaxWindow(times, 2*w); n2 > 2*n {
			t.Fatalf("two windows hold %d, more than twice %d", n2, n)
		}
	})
}
