package designs

import (
	"math/rand/v2"
	"sort"
	"time"

	"github.com/weirproxy/weir/internal/simulate/scenario"
)

// traffic draws the arrivals of a scenario.
type traffic struct {
	sources []stream
}

type stream struct {
	*scenario.Source
	random  *rand.Rand
	uniform bool
	sums    []float64 // of the weights
	owed    float64   // Uniform: the part of a batch that is due
}

func newTraffic(s *scenario.Scenario, random *rand.Rand) *traffic {
	t := &traffic{}
	for i := range s.Traffic {
		source := &s.Traffic[i]
		sums, sum := make([]float64, len(source.Pods)), 0.0
		for k, w := range source.Weights {
			sum += w
			sums[k] = sum
		}
		t.sources = append(t.sources, stream{Source: source, random: random, uniform: s.Arrivals == scenario.Uniform, sums: sums})
	}
	return t
}

// step calls offer for each request of the millisecond that starts at now.
func (t *traffic) step(now time.Duration, offer func(pod int)) {
	for i := range t.sources {
		s := &t.sources[i]
		for range s.batches(s.At(now) * step.Seconds() / float64(s.Batch)) {
			pod := s.pod(now)
			for range s.Batch {
				offer(pod)
			}
		}
	}
}

// batches draws how many arrive, mean on average.
func (s *stream) batches(mean float64) int {
	if s.uniform {
		s.owed += mean
		n := int(s.owed)
		s.owed -= float64(n)
		return n
	}
	n := 0
	for t := s.random.ExpFloat64(); t < mean; t += s.random.ExpFloat64() {
		n++
	}
	return n
}

func (s *stream) pod(now time.Duration) int {
	if s.Hop > 0 {
		return s.Pods[int(now/s.Hop)%len(s.Pods)]
	}
	x := s.random.Float64() * s.sums[len(s.sums)-1]
	k := sort.Search(len(s.sums), func(k int) bool { return x < s.sums[k] })
	return s.Pods[min(k, len(s.Pods)-1)]
}
