package designs

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weirproxy/weir/internal/simulate/scenario"
)

// A window holds what was added to its newest buckets, whatever the order and the gaps.
func TestWindowAgainstLog(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bucket, n := time.Duration(rapid.IntRange(1, 20).Draw(t, "bucket"))*step, rapid.IntRange(1, 8).Draw(t, "n")
		w, log, now := newWindow(bucket, n), map[int64]uint64{}, time.Duration(0)
		for range rapid.IntRange(1, 60).Draw(t, "adds") {
			now += time.Duration(rapid.IntRange(0, 60).Draw(t, "gap")) * step
			at := max(now-time.Duration(rapid.IntRange(0, 200).Draw(t, "age"))*step, 0)
			w.advance(now)
			w.add(at, 3)
			log[int64(at/bucket)] += 3
			want := uint64(0)
			for i := range int64(n) {
				want += log[int64(now/bucket)-i]
			}
			if w.content != want {
				t.Fatalf("at %v: %d, want %d", now, w.content, want)
			}
		}
	})
}

// Messages of a pod arrive once each, in order, after at least the least delay.
func TestMailKeepsOrder(t *testing.T) {
	f := fleet(4)
	f.scenario.Network.TailProbability = 0.3
	m := newMail[time.Duration](f, up)
	last, got := make([]time.Duration, f.Pods), 0
	const sent = 500
	for now := time.Duration(0); now < 2*time.Second; now += step {
		if now < sent*step {
			m.report(now, int(now/step)%f.Pods, now)
		}
		for _, l := range m.arrived(now) {
			got++
			if l.body < last[l.pod] || now-l.body < f.scenario.Network.Uplink.Min {
				t.Fatalf("pod %d: sent at %v after %v, arrived at %v", l.pod, l.body, last[l.pod], now)
			}
			last[l.pod] = l.body
		}
	}
	if got != sent {
		t.Errorf("%d of %d arrived", got, sent)
	}
}

func TestMailLosesAndDoubles(t *testing.T) {
	f := fleet(1)
	f.lost[up], f.twice = 0.25, 0.5
	m, got := newMail[int](f, up), 0
	for now := time.Duration(0); now < 10*time.Second; now += step {
		m.report(now, 0, 0)
		got += len(m.arrived(now))
	}
	if want := 10000 * 1.5 * 0.75; math.Abs(float64(got)/want-1) > 0.05 {
		t.Errorf("%d arrived, want about %v", got, want)
	}
}

func fleet(pods int) *Fleet {
	ms := time.Millisecond
	return &Fleet{
		Pods: pods, Limit: 100, Window: time.Second, random: rand.New(rand.NewPCG(1, 2)),
		scenario: &scenario.Scenario{Network: scenario.Network{
			Uplink: scenario.Delay{Min: 5 * ms, Max: 20 * ms}, Downlink: scenario.Delay{Min: 5 * ms, Max: 20 * ms}, TailMax: 100 * ms,
		}},
	}
}

// Pods get requests by their weights, in batches, at the source's rate.
func TestTrafficFollowsWeights(t *testing.T) {
	for _, kind := range []scenario.Arrivals{scenario.Poisson, scenario.Uniform} {
		got := offered(&scenario.Scenario{Arrivals: kind, Traffic: []scenario.Source{{
			Pods: []int{2, 5}, Weights: []float64{3, 1}, Batch: 4, Rate: []scenario.Step{{Value: 4000}},
		}}}, 10*time.Second)
		if math.Abs(float64(got[2])/30000-1) > 0.05 || math.Abs(float64(got[5])/10000-1) > 0.05 || len(got) != 2 {
			t.Errorf("%s: %v, want about 30000 on pod 2 and 10000 on pod 5", kind, got)
		}
		if got[2]%4 != 0 {
			t.Errorf("%s: %d requests in batches of 4", kind, got[2])
		}
	}
}

func TestTrafficHops(t *testing.T) {
	s := &scenario.Scenario{Arrivals: scenario.Uniform, Traffic: []scenario.Source{{
		Pods: []int{0, 1, 2}, Weights: []float64{1, 1, 1}, Hop: time.Second, Batch: 1, Rate: []scenario.Step{{Value: 1000}},
	}}}
	got := offered(s, 2*time.Second)
	if len(got) != 2 || math.Abs(float64(got[0]-1000)) > 1 || math.Abs(float64(got[1]-1000)) > 1 {
		t.Errorf("%v, want 1000 on pods 0 and 1", got)
	}
}

func offered(s *scenario.Scenario, length time.Duration) map[int]int {
	traffic, got := newTraffic(s, rand.New(rand.NewPCG(1, 1))), map[int]int{}
	for now := time.Duration(0); now < length; now += step {
		traffic.step(now, func(pod int) { got[pod]++ })
	}
	return got
}
