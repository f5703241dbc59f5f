package simulate

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/weirproxy/weir/aggregator/status"
	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/internal/bus"
	"github.com/weirproxy/weir/internal/quota"
	"github.com/weirproxy/weir/internal/simulate/scenario"
)

const (
	// warmUp is how long a fleet runs before its first request: policies read, pods counted, headers heard.
	warmUp = 3 * time.Second
	// podStart is a pod's time when the run's first event is: quota takes 0 for none.
	podStart = quota.Time(time.Hour)
	// start is a pod's time at the scenario's beginning, startDate the owner's.
	start     = podStart + quota.Time(warmUp)
	startDate = quota.Millis(1_795_000_000_000)

	partitions = 1
	lane       = 0
)

// world is one run: everything in it, and the order in which it happens.
type world struct {
	s     *scenario.Scenario
	now   quota.Time
	queue queue
	rng   *rand.Rand
	keys  wirev1.Keys

	log      usageLog
	topics   bus.Topics
	policies policies
	pods     []*pod // by index; a restart replaces one
	leaving  []*pod // draining
	owners   []*owner
	store    *memory
	book     *status.Book
	live     map[string]int
	liveDue  bool
	believed int

	brokerDown bool
	history    []decision // newest last, as long as a new pod reads
	traffic    []*source
	judges     judges
	cells      *cells
	chance     chance
	hooks      hooks
	tally      tally
	err        error
}

// chance of a message to be lost, repeated, and so on.
type chance struct {
	usageLoss, usageDuplicate, ackLoss, decisionLoss float64
	// Of a report: appended up to latest after its pod gave it up; or appended a second time so late.
	usageLate, usageRepeat float64
	// Of a write to the store: it comes up to latest after its owner gave it up; or its answer is lost.
	flushLate, flushUnanswered float64
}

// latest is how late a message may come.
const latest = 1500 * time.Millisecond

// late is how late one comes.
func (w *world) late() time.Duration { return w.uniform(scenario.Delay{Max: latest}) }

// tally of messages.
type tally struct{ usage, batches, records, requests uint64 }

func newWorld(s *scenario.Scenario, seed uint64, c *cells) (*world, error) {
	keys, err := wirev1.NewKeys(bytes.Repeat([]byte{7}, wirev1.KeySize))
	if err != nil {
		return nil, err
	}
	w := &world{
		s: s, now: podStart, rng: rand.New(rand.NewPCG(seed, 0x5eed)), keys: keys, topics: bus.Topics{}.WithDefaults(),
		store: newMemory(), book: status.NewBook(keys.Fingerprint()), live: map[string]int{}, cells: c,
	}
	w.log = newUsageLog(w.rng)
	if w.policies, err = newPolicies(s, keys); err != nil {
		return nil, fmt.Errorf("scenario %s: %w", s.Name, err)
	}
	w.judges = newJudges(w)
	w.startOwner()
	for i := range s.Pods {
		w.startPod(i, fmt.Sprint("scenario/pod-", i))
	}
	for i := range s.Traffic {
		w.traffic = append(w.traffic, newSource(w, &s.Traffic[i], i))
	}
	w.keepLive()
	w.plan()
	return w, nil
}

// at is the scenario's time: 0 is where traffic begins.
func (w *world) at() time.Duration { return time.Duration(w.now - start) }

// date is the broker's clock.
func (w *world) date() quota.Millis { return dateOf(w.now) }

func dateOf(t quota.Time) quota.Millis {
	return startDate + quota.Millis((t-start)/quota.Time(time.Millisecond))
}

func (w *world) appendTime() time.Time { return time.UnixMilli(int64(w.date())) }

func (w *world) after(d time.Duration, do func()) { w.queue.put(w.now+quota.Time(max(d, 0)), do) }

// when runs do at the scenario's time at.
func (w *world) when(at time.Duration, do func()) { w.queue.put(start+quota.Time(at), do) }

// run lets time pass until the scenario's time end.
func (w *world) run(end time.Duration) {
	until := start + quota.Time(end)
	for w.err == nil {
		src := w.nextSource()
		at, ok := w.queue.next()
		switch {
		case src != nil && src.next < until && (!ok || src.next <= at):
			w.now = src.next
			src.arrive()
		case ok && at < until:
			w.now = at
			w.queue.take()()
		default:
			w.now = until
			return
		}
	}
}

func (w *world) nextSource() *source {
	var first *source
	for _, s := range w.traffic {
		if !s.ended && (first == nil || s.next < first.next) {
			first = s
		}
	}
	return first
}

func (w *world) uniform(d scenario.Delay) time.Duration {
	return d.Min + time.Duration(w.rng.Float64()*float64(d.Max-d.Min))
}

// tail is what a few messages take more.
func (w *world) tail() time.Duration {
	if w.rng.Float64() >= w.s.Network.TailProbability {
		return 0
	}
	return time.Duration(w.rng.Float64() * float64(w.s.Network.TailMax))
}

func (w *world) lost(p float64) bool { return p > 0 && w.rng.Float64() < p }

// keepLive has the number of live pods looked at as an aggregator does.
func (w *world) keepLive() {
	if w.liveDue || w.believed != 0 {
		w.liveDue = false
		w.live = w.book.Live(time.Duration(w.now))
		if w.believed > 0 {
			for t := range w.live {
				w.live[t] = w.believed
			}
		}
		for _, o := range w.owners {
			o.wake()
		}
	}
	w.after(livePeriod, w.keepLive)
}

const livePeriod = 100 * time.Millisecond
