//go:build !race

package simulate

import (
	"sort"
	"time"

	"google.golang.org/protobuf/proto"

	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/internal/quota"
	"github.com/weirproxy/weir/internal/simulate/scenario"
	"github.com/weirproxy/weir/sidecar/ledger"
)

// truth is what became of a run's one counter, as neither pods nor owner see it: which unit was admitted where and
// when, and which record of weir.usage said so first. Times are ms since the scenario's beginning, so that a window
// is (t-W, t] as in package measure.
type truth struct {
	w       *world
	window  int64 // ms
	limit   float64
	pods    []*podTruth
	byName  map[string]*podTruth
	asked   uint64 // requests until the last look
	read    int64  // offsets below were taken up
	upto    []int  // upto[o]: units that records up to offset o tell of
	within  sums   // told units by when they were admitted
	claimed sums   // told units by when they seem to have been: see tell
	all     sums   // every unit by when it was admitted

	batch   *byte    // the newest batch that was taken up
	records []uint64 // sequences of those with a record
}

// podTruth is one pod's part.
type podTruth struct {
	pod      *pod
	slot     *ledger.Slot
	times    []int64 // of each unit
	reported []told  // in log order
	last     stand   // what its newest unit was admitted on
}

// told: records up to offset tell of the pod's first units.
type told struct {
	offset int64
	units  int
}

func newTruth(w *world, s *scenario.Scenario) *truth {
	rule := s.Policy.Limits[0].Rates[0]
	t := &truth{
		w: w, window: rule.Window.Milliseconds(), limit: float64(rule.Limit), byName: map[string]*podTruth{},
	}
	n := (s.Duration + warmUp).Milliseconds() + 1
	t.within, t.claimed, t.all = make(sums, n), make(sums, n), make(sums, n)
	for _, p := range w.pods {
		pt := &podTruth{pod: p}
		t.pods = append(t.pods, pt)
		t.byName[p.name] = pt
	}
	return t
}

// now is ms since the scenario's beginning.
func (t *truth) now() int64 { return t.w.at().Milliseconds() }

// admitted takes up what pods admitted since the last call, and returns those that did.
func (t *truth) admitted(into []*podTruth) []*podTruth {
	if t.asked == t.w.tally.requests {
		return into
	}
	t.asked = t.w.tally.requests
	now := t.now()
	for _, p := range t.pods {
		if p.slot == nil {
			if slots := p.pod.drive.Slots(); len(slots) > 0 {
				p.slot = slots[0]
			} else {
				continue
			}
		}
		n := int(p.slot.Cell.Admitted()) - len(p.times) //nolint:gosec // far below
		if n == 0 {
			continue
		}
		for range n {
			p.times = append(p.times, now)
		}
		t.all.add(now, n)
		into = append(into, p)
	}
	return into
}

// log takes up what was appended to weir.usage since the last call.
func (t *truth) log() error {
	l := &t.w.log
	for ; t.read < l.end(); t.read++ {
		units := 0
		if t.read > 0 {
			units = t.upto[t.read-1]
		}
		var m wirev1.UsageMessage
		if err := proto.Unmarshal(l.records[t.read-l.first].value, &m); err != nil {
			return err
		}
		if r := m.GetReport(); r != nil {
			for _, target := range r.GetTargets() {
				for _, e := range target.GetEntries() {
					units += t.tell(t.byName[r.GetPod()], t.read, int(e.GetBase()), int(e.GetCumulative())) //nolint:gosec // small
				}
			}
		}
		t.upto = append(t.upto, units)
	}
	return nil
}

// decided takes up the batch that was appended to weir.decisions since the last call.
func (t *truth) decided() error {
	n := len(t.w.history)
	if n == 0 || &t.w.history[n-1].value[0] == t.batch {
		return nil
	}
	var b wirev1.DecisionBatch
	if err := proto.Unmarshal(t.w.history[n-1].value, &b); err != nil {
		return err
	}
	t.batch = &t.w.history[n-1].value[0]
	if len(b.GetRecords()) > 0 {
		t.records = append(t.records, b.GetHeader().GetSequence())
	}
	return nil
}

// replaced says that of two sequences the second is a header's that a pod heard, and that a record came between.
func (t *truth) replaced(record, header uint64) bool {
	i := sort.Search(len(t.records), func(i int) bool { return t.records[i] > record })
	return i < len(t.records) && t.records[i] <= header
}

// tell counts the units that a report is the first to tell of. It says when its first and its newest unit were
// admitted, and its owner takes all of them as spread evenly between: of n units the j-th seems to have come j/n of the
// way. What the owner takes to have come with a front seems to have come later, never earlier.
func (t *truth) tell(p *podTruth, offset int64, base, cumulative int) int {
	last := p.told(offset)
	n := cumulative - last
	if n <= 0 {
		return 0
	}
	from, to := p.times[base], p.times[cumulative-1]
	if last > base { // an earlier report was lost to the pod and not to the log: its end is where this one's begins
		from = max(from, p.times[last-1])
	}
	for j := range n {
		t.within.add(p.times[last+j], 1)
		t.claimed.add(from+(to-from)*int64(j+1)/int64(n), 1)
	}
	p.reported = append(p.reported, told{offset, cumulative})
	return n
}

// told is how many of the pod's units the records up to an offset tell of.
func (p *podTruth) told(offset int64) int {
	i := sort.Search(len(p.reported), func(i int) bool { return p.reported[i].offset > offset })
	if i == 0 {
		return 0
	}
	return p.reported[i-1].units
}

// toldWithin is how many of those that records up to an offset tell of came after ms.
func (p *podTruth) toldWithin(offset, ms int64) int {
	n := p.told(offset)
	return n - sort.Search(n, func(i int) bool { return p.times[i] > ms })
}

// content is how many units that records up to an offset tell of are in the window at ms by s. What later records tell of
// is taken as younger than the window.
func (t *truth) content(s sums, offset, ms int64) float64 {
	if offset < 0 {
		return 0
	}
	later := t.upto[len(t.upto)-1] - t.upto[offset]
	return float64(s.after(ms-t.window) - later)
}

// sums is how many units came at each ms since the run's beginning, as a tree of sums.
type sums []int

func (s sums) add(ms int64, n int) {
	for i := max(ms+warmUp.Milliseconds(), 0) + 1; i < int64(len(s)); i += i & -i {
		s[i] += n
	}
}

// upTo is how many came at ms or before.
func (s sums) upTo(ms int64) (n int) {
	for i := min(max(ms+warmUp.Milliseconds()+1, 0), int64(len(s)-1)); i > 0; i -= i & -i {
		n += s[i]
	}
	return n
}

func (s sums) after(ms int64) int { return s.upTo(int64(len(s))) - s.upTo(ms) }

// watch runs a scenario and calls seen after each thing that happens in it.
func (w *world) watch(end time.Duration, seen func() error) error {
	for w.err == nil {
		src := w.nextSource()
		at, ok := w.queue.next()
		until := start + quota.Time(end)
		switch {
		case src != nil && src.next < until && (!ok || src.next <= at):
			w.now = src.next
			src.arrive()
		case ok && at < until:
			w.now = at
			w.queue.take()()
		default:
			w.now = until
			return nil
		}
		if err := seen(); err != nil {
			return err
		}
	}
	return w.err
}
