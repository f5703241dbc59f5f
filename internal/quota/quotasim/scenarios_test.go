package quotasim

import (
	"math"
	"testing"
	"time"

	"github.com/weirproxy/weir/internal/quota"
)

const second = time.Second

func sliding(limit float64, w time.Duration) quota.Rule {
	return quota.Rule{Algorithm: quota.SlidingWindow, Limit: limit, Window: w, StaleAfter: 200 * time.Millisecond, Floor: 0.5}
}

func even(pods int, rate func(t time.Duration) float64) Load {
	return func(_ int, t time.Duration) float64 { return rate(t) / float64(pods) }
}

func step(at time.Duration, before, after float64) func(time.Duration) float64 {
	return func(t time.Duration) float64 {
		if t < at {
			return before
		}
		return after
	}
}

func zipf(pods int, exponent float64, rate func(t time.Duration) float64) Load {
	w, sum := make([]float64, pods), 0.0
	for i := range w {
		w[i] = 1 / math.Pow(float64(i+1), exponent)
		sum += w[i]
	}
	return func(i int, t time.Duration) float64 { return rate(t) * w[i] / sum }
}

type scenario struct {
	name        string
	config      Config
	over, under float64 // references
}

func scenarios() []scenario {
	bucket := sliding(1000, second)
	bucket.Algorithm, bucket.Burst = quota.TokenBucket, 200
	m := time.Millisecond
	square := func(t time.Duration) float64 {
		if t%(2*second) < second {
			return 500
		}
		return 5000
	}
	return []scenario{
		{"S1", Config{Pods: 10, Rule: sliding(1000, second), Duration: 14 * second, Steady: 4 * second,
			Load: even(10, step(500*m, 0, 10000))}, 8.9, 1.6},
		{"S2", Config{Pods: 100, Rule: sliding(1000, second), Duration: 14 * second, Steady: 4 * second,
			Load: zipf(100, 1, step(1500*m, 500, 5000))}, 6.6, 5.1},
		{"S3", Config{Pods: 10, Rule: sliding(1000, second), Duration: 14 * second, Steady: 4 * second,
			Load: func(i int, t time.Duration) float64 {
				if i != 3 || t < 500*m {
					return 0
				}
				return 5000
			}}, 3.7, 1.6},
		{"S4", Config{Pods: 100, Rule: sliding(10, second), Duration: 30 * second, Steady: 5 * second,
			Load: even(100, step(500*m, 0, 30))}, 47.3, -4.2},
		{"S5", Config{Pods: 10, Rule: sliding(1000, second), Duration: 12 * second, Steady: 2 * second,
			Load: even(10, square)}, 3.0, -1.1},
		{"S6b", Config{Pods: 10, Rule: sliding(1000, second), Duration: 12 * second, Steady: 2 * second,
			Load: func(i int, t time.Duration) float64 {
				if int(t/second)%10 != i {
					return 0
				}
				return 800
			}}, -13.3, 0.2},
		{"S7", Config{Pods: 100, Rule: sliding(1000, second), Duration: 14 * second, Steady: 4 * second,
			Load: even(100, step(2*second, 700, 15000))}, 20.3, 1.9},
		{"S10b", Config{Pods: 100, Rule: sliding(1000, second), Duration: 12 * second, Steady: 2 * second, Batch: 20,
			Load: even(100, step(0, 0, 500))}, -28.4, 1.6},
		{"S12", Config{Pods: 30, Rule: sliding(10000, 10*second), Duration: 50 * second, Steady: 12 * second,
			Load: zipf(30, 1, step(second, 0, 5000))}, 0.2, 2.1},
		{"T1", Config{Pods: 10, Rule: bucket, Duration: 10 * second, Steady: 2 * second,
			Load: even(10, step(500*m, 0, 5000))}, 54, math.NaN()},
	}
}

// ALGORITHM 7, number 6 (with internal/simulate, which runs all of them on whole agents): weir's own code against the references of the stand-alone simulator, with the slack that
// their file grants to few runs: 2 points or 25 %.
func TestScenarios(t *testing.T) {
	runs := 3.0
	if testing.Short() {
		runs = 1
	}
	for _, s := range scenarios() {
		t.Run(s.name, func(t *testing.T) {
			if raceEnabled && s.config.Pods > 10 {
				t.Skip("no goroutine runs here: nothing to race")
			}
			t.Parallel()
			var over, under, reports, records float64
			for seed := range uint64(runs) {
				c := s.config
				c.Seed = seed + 1
				r := Run(c)
				over += r.Over / runs
				under += r.Under / runs
				reports += float64(r.Reports) / c.Duration.Seconds() / runs
				records += float64(r.Records) / c.Duration.Seconds() / runs
			}
			t.Logf("%-5s over %6.1f (%5.1f)  under %5.1f (%4.1f)  reports/s %6.0f  records/s %4.0f",
				s.name, over, s.over, under, s.under, reports, records)
			if over > s.over+max(2, 0.25*math.Abs(s.over)) {
				t.Errorf("over-admission %.1f %%, reference %.1f %%", over, s.over)
			}
			if under > s.under+max(2, 0.25*math.Abs(s.under)) {
				t.Errorf("under-admission %.1f %%, reference %.1f %%", under, s.under)
			}
		})
	}
}
