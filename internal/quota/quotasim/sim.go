// Package quotasim runs one counter on many pods in virtual time, on package quota's own code: a
// log with offsets in memory, delays, periods of flush and tick. It is for tests of the algorithm; `weir
// simulate`, which drives the programs' own cores, is another thing.
//
// Steps are 1 ms. A report is appended, and acknowledged, half way between flush and ingest; slow
// ones are slow on the way to the log, which is read in its order.
package quotasim

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/weirproxy/weir/internal/quota"
)

// Load returns the requests/s offered to pod i at t.
type Load func(pod int, t time.Duration) float64

// Config is one run.
type Config struct {
	Pods     int
	Rule     quota.Rule
	Duration time.Duration
	Steady   time.Duration // measures of under-admission begin here
	Load     Load
	Batch    int // requests that arrive together; 0: 1
	Cost     uint64
	Seed     uint64

	Flush, Tick time.Duration
	// Lead is delta0, on both sides.
	Lead time.Duration
	// Every: a record each tick, without suppression.
	Every bool
	// Uplink and Downlink delays, uniform.
	UplinkMin, UplinkMax, DownlinkMin, DownlinkMax time.Duration
	// Tail: this part of messages takes up to TailMax more.
	Tail    float64
	TailMax time.Duration
	// Down: the aggregator is away in [from, to).
	Down [2]time.Duration
	// UsageLoss, UsageDuplicate and DecisionLoss are parts of the messages.
	UsageLoss, UsageDuplicate, DecisionLoss float64
	// Change replaces the rule at a time.
	ChangeAt time.Duration
	Change   *quota.Rule
	// Believed is the number of pods that owner and pods go by; 0: the true one.
	Believed int
}

// Result is what came of it.
type Result struct {
	Admitted []int // units a ms
	Offered  []int
	Exact    []int // what an exact limiter would have admitted of the same arrivals
	Reports  int
	Urgent   int // reports sent ahead of their period
	Records  int
	Over     float64 // %, of the fullest window (or of a bucket's worst interval)
	Under    float64 // %
	Log      uint64  // units the owner counted
	Total    uint64  // units admitted
}

// start keeps virtual time away from zero and gives owner time a date.
const (
	start = quota.Time(time.Hour)
	epoch = quota.Millis(1_795_000_000_000)
)

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
	set(&c.Lead, 2500*time.Microsecond)
	if c.Tail == 0 {
		c.Tail, c.TailMax = 0.002, 100*time.Millisecond
	}
	c.Batch, c.Cost = max(c.Batch, 1), max(c.Cost, 1)
	if c.Believed == 0 {
		c.Believed = c.Pods
	}
}

type sim struct {
	Config
	ms      int64
	rng     *rand.Rand
	pods    []*pod
	up      []uplink
	owner   owner
	offset  int64
	res     Result
	limiter exact
}

// Run runs c from an empty counter.
func Run(c Config) Result {
	c.defaults()
	s := &sim{Config: c, rng: rand.New(rand.NewPCG(c.Seed, 0x5eed))}
	s.owner.total = quota.NewTotal(&s.Rule, epoch)
	s.limiter = newExact(&s.Rule)
	for i := range c.Pods {
		s.pods = append(s.pods, newPod(s, i))
	}
	for s.ms = 0; s.ms < c.Duration.Milliseconds(); s.ms++ {
		s.step()
	}
	s.res.Total = sum(s.res.Admitted)
	s.res.Log = s.owner.total.Admitted()
	s.measure()
	return s.res
}

func (s *sim) now() quota.Time    { return start + quota.Time(s.ms)*quota.Time(time.Millisecond) }
func (s *sim) at() time.Duration  { return time.Duration(s.ms) * time.Millisecond }
func (s *sim) date() quota.Millis { return epoch + quota.Millis(s.ms) }

func (s *sim) delay(lo, hi time.Duration) int64 {
	d := lo + time.Duration(s.rng.Float64()*float64(hi-lo))
	if s.rng.Float64() < s.Tail {
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
	n, p := 0, s.rng.Float64()
	if p <= 1-mean { // exp(-mean) is more than that
		return 0
	}
	limit := math.Exp(-mean)
	for p > limit {
		p *= s.rng.Float64()
		n++
	}
	return n
}

func (s *sim) step() {
	if s.Change != nil && s.at() == s.ChangeAt {
		s.owner.total.SetRule(s.Change)
		for _, p := range s.pods {
			p.setRule(s.Change)
		}
	}
	s.append()
	s.owner.consume(s)
	s.owner.tick(s)
	admitted, offered := 0, 0
	s.limiter.advance(s.ms)
	first := s.rng.IntN(len(s.pods))
	for k := range s.pods {
		i := (first + k) % len(s.pods)
		p := s.pods[i]
		p.receive(s)
		batches := s.poisson(s.Load(i, s.at()) / 1000 / float64(s.Batch))
		for range batches * s.Batch {
			offered += int(s.Cost)
			s.limiter.take(int(s.Cost))
			admitted += p.check(s)
		}
		p.flush(s)
	}
	s.res.Admitted = append(s.res.Admitted, admitted)
	s.res.Offered = append(s.res.Offered, offered)
	s.res.Exact = append(s.res.Exact, s.limiter.admitted())
}

func sum(xs []int) (n uint64) {
	for _, x := range xs {
		n += uint64(x)
	}
	return n
}
