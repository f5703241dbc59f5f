package leases

import (
	"math"
	"math/rand/v2"
	"time"
)

// Load returns the requests/s offered to pod i at t.
type Load func(pod int, t time.Duration) float64

// Config is one run. Zero periods and delays stand for those of internal/quota/quotasim.
type Config struct {
	Rules
	Pods     int
	Duration time.Duration
	Steady   time.Duration // Under begins here
	Load     Load
	Seed     uint64

	Flush, Tick                                    time.Duration
	UplinkMin, UplinkMax, DownlinkMin, DownlinkMax time.Duration
	Tail                                           float64 // this part of messages takes up to TailMax more
	TailMax                                        time.Duration
	Faults
}

// Result is what came of it, a ms an element. A request counts in Stamps when its check read the clock, in
// Answers when its answer left.
type Result struct {
	Stamps, Answers []int
	Offered         []int
	Exact           []int // what an exact limiter would have admitted
	Reports         int
	Grants          int // entries of batches
}

func (c *Config) defaults() {
	set := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	set(&c.Flush, 50*time.Millisecond)
	set(&c.Tick, 25*time.Millisecond)
	set(&c.UplinkMin, 5*time.Millisecond)
	set(&c.UplinkMax, 20*time.Millisecond)
	set(&c.DownlinkMin, 5*time.Millisecond)
	set(&c.DownlinkMax, 20*time.Millisecond)
	if c.Tail == 0 {
		c.Tail, c.TailMax = 0.002, 100*time.Millisecond
	}
}

type sim struct {
	Config
	ms      int64
	rng     *rand.Rand
	nodes   []*node
	seats   []*seat // owners; the newest last
	log     logs
	res     Result
	limiter exact
}

// Run runs c from an empty counter.
func Run(c Config) Result {
	c.defaults()
	s := &sim{Config: c, rng: rand.New(rand.NewPCG(c.Seed, 0x1ea5e))}
	s.limiter = exact{limit: c.Limit, window: int(c.Window.Milliseconds())}
	for i := range c.Pods {
		s.nodes = append(s.nodes, newNode(s, i))
	}
	s.seats = []*seat{newSeat(s, 1)}
	s.seats[0].owner = NewOwner(&s.Rules, s.Pods, 1, s.seats[0].clock.at(0))
	for s.ms = 0; s.ms < c.Duration.Milliseconds(); s.ms++ {
		s.step()
	}
	return s.res
}

func (s *sim) step() {
	for _, list := range []*[]int{&s.res.Stamps, &s.res.Answers, &s.res.Offered} {
		*list = append(*list, 0)
	}
	s.append()
	s.move()
	for _, o := range s.seats {
		o.step(s)
	}
	first := s.rng.IntN(len(s.nodes))
	for k := range s.nodes {
		s.nodes[(first+k)%len(s.nodes)].step(s)
	}
	s.res.Exact = append(s.res.Exact, s.limiter.take(s.res.Offered[s.ms]))
}

func (s *sim) at() time.Duration { return time.Duration(s.ms) * time.Millisecond }

func (s *sim) chance(part float64) bool { return part > 0 && s.rng.Float64() < part }

// later is a ms up to d from now.
func (s *sim) later(d time.Duration) int64 { return s.ms + s.rng.Int64N(d.Milliseconds()+1) }

func (s *sim) delay(lo, hi time.Duration) int64 {
	d := lo + time.Duration(s.rng.Float64()*float64(hi-lo))
	if s.chance(s.Tail) {
		d += time.Duration(s.rng.Float64() * float64(s.TailMax))
	}
	return max(d.Milliseconds(), 1)
}

func (s *sim) poisson(mean float64) int {
	if mean <= 0 {
		return 0
	}
	if mean > 30 {
		return max(0, int(math.Round(mean+math.Sqrt(mean)*s.rng.NormFloat64())))
	}
	n, limit := 0, math.Exp(-mean)
	for p := s.rng.Float64(); p > limit; p *= s.rng.Float64() {
		n++
	}
	return n
}

// clock is one process's: of unknown start, and of a rate that is not quite one.
type clock struct{ start, rate float64 }

func (s *sim) newClock() clock {
	return clock{1e9 * float64(1+s.rng.IntN(1000)), 1 + s.Clocks*(2*s.rng.Float64()-1)}
}

func (c clock) at(ms int64) Time { return Time(c.start + c.rate*float64(ms)*1e6) }
