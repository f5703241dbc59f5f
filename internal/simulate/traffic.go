package simulate

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/weirproxy/weir/internal/quota"
	"github.com/weirproxy/weir/internal/simulate/measure"
	"github.com/weirproxy/weir/internal/simulate/scenario"
)

// source is one stream of requests, with the time of its next one.
type source struct {
	w     *world
	s     *scenario.Source
	index int
	rng   *rand.Rand
	next  quota.Time
	ended bool

	rate    float64    // batches/s until changes
	changes quota.Time // 0: never
	pods    alias
	clients alias
	asks    []request // by client
	tally   measure.Source
}

func newSource(w *world, s *scenario.Source, index int) *source {
	src := &source{
		w: w, s: s, index: index, rng: rand.New(rand.NewPCG(w.rng.Uint64(), uint64(index))), //nolint:gosec // not negative
		pods: newAlias(s.Weights),
	}
	src.tally.Name = sourceName(s, index)
	for i := range max(s.Clients, 1) {
		src.asks = append(src.asks, newRequest(w.policies.policy, s, s.ClientName(i)))
	}
	if s.Clients > 1 {
		src.clients = newAlias(scenario.Zipf(s.Clients, s.ClientSkew))
	}
	src.next = start
	src.setRate()
	src.plan()
	return src
}

// sourceName is what a person knows the source by.
func sourceName(s *scenario.Source, index int) string {
	switch {
	case s.Client == "":
		return fmt.Sprint("source ", index+1)
	case s.Clients > 1:
		return fmt.Sprintf("%s (%d clients)", s.Client, s.Clients)
	}
	return s.Client
}

// setRate takes the rate at next.
func (s *source) setRate() {
	at := time.Duration(s.next - start)
	s.rate = s.s.At(at) / float64(s.s.Batch)
	s.changes = 0
	if change, ok := s.s.NextChange(at); ok {
		s.changes = start + quota.Time(change)
	}
}

// plan draws the next arrival. Where the rate changes before, it is drawn anew from there: the process has no
// memory, and an even one begins anew.
func (s *source) plan() {
	for {
		if s.rate > 0 {
			gap := 1 / s.rate
			if s.w.s.Arrivals == scenario.Poisson {
				gap *= s.rng.ExpFloat64()
			}
			next := s.next + quota.Time(min(gap, 1e9)*1e9)
			if s.changes == 0 || next < s.changes {
				s.next = next
				return
			}
		} else if s.changes == 0 {
			s.ended = true
			return
		}
		s.next = s.changes
		s.setRate()
	}
}

// arrive makes the next requests, all on one pod.
func (s *source) arrive() {
	at := s.w.at()
	i := s.pods.draw(s.rng)
	if s.s.Hop > 0 {
		i = int(at/s.s.Hop) % len(s.s.Pods)
	}
	client := 0
	if s.clients != nil {
		client = s.clients.draw(s.rng)
	}
	index, p := s.w.serving(s.s.Pods[i])
	if p != nil {
		a := p.asker(s, client)
		for range s.s.Batch {
			a.ask(s.w, at, p, index)
		}
		s.w.tally.requests += uint64(s.s.Batch) //nolint:gosec // not negative
		p.checked()
	}
	s.plan()
}

// serving is the pod that takes the requests of the one at index: itself, or the next one that is there.
func (w *world) serving(index int) (int, *pod) {
	for range w.pods {
		index %= len(w.pods)
		if p := w.pods[index]; p != nil && !p.dead && p.drained == nil {
			return index, p
		}
		index++
	}
	return 0, nil
}

// alias draws from weights in one step (Vose 1991).
type alias []struct {
	keep  float64
	other int
}

func newAlias(weights []float64) alias {
	sum := 0.0
	for _, x := range weights {
		sum += x
	}
	a := make(alias, len(weights))
	part := make([]float64, len(weights))
	var small, large []int
	for i, x := range weights {
		part[i] = x / sum * float64(len(weights))
		if part[i] < 1 {
			small = append(small, i)
		} else {
			large = append(large, i)
		}
	}
	for len(small) > 0 && len(large) > 0 {
		s, l := small[len(small)-1], large[len(large)-1]
		small = small[:len(small)-1]
		a[s].keep, a[s].other = part[s], l
		if part[l] -= 1 - part[s]; part[l] < 1 {
			large = large[:len(large)-1]
			small = append(small, l)
		}
	}
	for _, i := range append(small, large...) {
		a[i].keep = 1
	}
	return a
}

func (a alias) draw(rng *rand.Rand) int {
	if len(a) <= 1 {
		return 0
	}
	x := rng.Float64() * float64(len(a))
	i := min(int(x), len(a)-1)
	if x-math.Floor(x) < a[i].keep {
		return i
	}
	return a[i].other
}
