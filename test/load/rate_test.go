package load

import (
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func evenly() float64 { return 1 }

func TestArrivalsFollowTheSteps(t *testing.T) {
	a := newArrivals(Steps(
		Step{For: 2 * time.Second, PerSecond: 50},
		Step{For: time.Second, PerSecond: 0},
		Step{For: time.Second, PerSecond: 1000},
	), evenly)
	for _, want := range []struct {
		until time.Duration
		n     int
	}{{time.Second, 50}, {2 * time.Second, 50}, {3 * time.Second, 0}, {4 * time.Second, 1000}, {time.Hour, 0}} {
		if n := a.due(want.until); n != want.n {
			t.Errorf("up to %v: %d, want %d", want.until, n, want.n)
		}
	}
}

// How often the dispatcher looks must not matter to how much it sends.
func TestArrivalsDoNotDependOnTheLooks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		perSecond := rapid.Float64Range(0, 20000).Draw(t, "rate")
		looks := rapid.SliceOfN(rapid.Int64Range(0, 300_000), 0, 20).Draw(t, "looks, µs")
		const end = 5 * time.Second
		once, often := newArrivals(Constant(perSecond), evenly), newArrivals(Constant(perSecond), evenly)
		sum, at := 0, time.Duration(0)
		for _, us := range looks {
			at += time.Duration(us) * time.Microsecond
			sum += often.due(min(at, end))
		}
		sum += often.due(end)
		if n := once.due(end); n != sum {
			t.Fatalf("%d in one look, %d in several", n, sum)
		}
		if want := perSecond * end.Seconds(); float64(sum) > want+1 || float64(sum) < want-1 {
			t.Fatalf("%d requests of %v", sum, want)
		}
	})
}

func TestPoissonArrivalsHaveTheRatesMeanAndItsSpread(t *testing.T) {
	const perSecond, seconds = 1000, 200
	a := newArrivals(Constant(perSecond), rand.New(rand.NewPCG(1, 2)).ExpFloat64)
	var sum, squares float64
	for s := 1; s <= seconds; s++ {
		n := float64(a.due(time.Duration(s) * time.Second))
		sum += n
		squares += n * n
	}
	mean := sum / seconds
	variance := squares/seconds - mean*mean
	if mean < 990 || mean > 1010 {
		t.Errorf("mean %v a second", mean)
	}
	if variance < 700 || variance > 1400 { // a Poisson count's variance is its mean
		t.Errorf("variance %v", variance)
	}
}
