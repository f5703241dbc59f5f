package simulate

import (
	"math"

	"google.golang.org/protobuf/proto"

	"github.com/weirproxy/weir/aggregator/store"
	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/internal/bus"
	"github.com/weirproxy/weir/internal/quota"
)

// books are what was admitted and what came into the log, written down from outside of the code under test: from the
// answers to requests, and from the bytes of reports.
type books struct {
	w        *world
	logs     []bus.TopicID // in order; the last is in force
	runs     []*pod        // in order of their first charge or report
	admitted map[account]uint64
	charges  map[wirev1.ID][]chargedAt
	series   map[series][]entered
	acked    map[series]uint64
	ids      []wirev1.ID // in order of their first charge
	claims   []claimed
	// missing is, by counter, the most that may be gone with the store's data or an earlier log.
	missing map[wirev1.ID]uint64
	err     error
}

// account is what one run of a pod admitted to a counter.
type account struct {
	run *pod
	id  wirev1.ID
}

// series is one slot of a run: its cumulative counts go up.
type series struct {
	account
	made uint64
}

type chargedAt struct {
	at   quota.Time
	cost uint64
}

// entered is an entry that came into a log.
type entered struct {
	log              int
	offset           int64
	cumulative, base uint64
	text             bool       // its counter's identity is with it
	way, span        quota.Time // from its hand-over to the log; that its units lie in
	at               quota.Time
}

// claimed is an owner, which reads a log from an offset on.
type claimed struct {
	log         int
	from, epoch int64
	stored      int64 // what is up to it is in the store
}

func newBooks(w *world) *books {
	t := &books{
		w: w, logs: []bus.TopicID{w.log.id}, admitted: map[account]uint64{}, charges: map[wirev1.ID][]chargedAt{},
		series: map[series][]entered{}, acked: map[series]uint64{}, missing: map[wirev1.ID]uint64{},
	}
	w.hooks.charged, w.hooks.appended, w.hooks.acknowledged = t.charged, t.appended, t.acknowledged
	w.hooks.claimed = t.claimed
	return t
}

func (t *books) charged(p *pod, id wirev1.ID, cost uint64) {
	a := account{p, id}
	t.meet(p)
	t.admitted[a] += cost
	if len(t.charges[id]) == 0 {
		t.ids = append(t.ids, id)
	}
	t.charges[id] = append(t.charges[id], chargedAt{t.w.now, cost})
}

func (t *books) meet(p *pod) {
	for _, r := range t.runs {
		if r == p {
			return
		}
	}
	t.runs = append(t.runs, p)
}

func (t *books) log() int {
	if id := t.w.log.id; id != t.logs[len(t.logs)-1] {
		t.logs = append(t.logs, id)
	}
	return len(t.logs) - 1
}

// entries calls f for each entry of an encoded report.
func (t *books) entries(p *pod, value []byte, f func(series, *wirev1.UsageEntry)) {
	var m wirev1.UsageMessage
	if err := proto.Unmarshal(value, &m); err != nil {
		t.err = err
		return
	}
	for _, target := range m.GetReport().GetTargets() {
		for _, e := range target.GetEntries() {
			f(series{account{p, wirev1.ID{Hi: e.GetIdHi(), Lo: e.GetIdLo()}}, e.GetMade()}, e)
		}
	}
}

const millisecond = quota.Time(1e6)

func (t *books) appended(p *pod, value []byte, sent quota.Time, offset int64) {
	log := t.log()
	t.entries(p, value, func(s series, e *wirev1.UsageEntry) {
		t.series[s] = append(t.series[s], entered{
			log: log, offset: offset, cumulative: e.GetCumulative(), base: e.GetBase(), text: len(e.GetIdentity()) > 0, way: t.w.now - sent,
			span: quota.Time(e.GetSpanMs()) * millisecond, at: t.w.now,
		})
	})
}

func (t *books) acknowledged(p *pod, value []byte) {
	t.entries(p, value, func(s series, e *wirev1.UsageEntry) { t.acked[s] = max(t.acked[s], e.GetCumulative()) })
}

// claimed: what an owner does not find in the store of an earlier log's usage is gone with that log.
func (t *books) claimed(o *owner, before store.Record) {
	log := t.log()
	c := claimed{log, o.next, o.cfg.Owner.Epoch, -1}
	if before.LogID == o.cfg.Owner.LogID {
		c.stored = before.Offset
	}
	t.claims = append(t.claims, c)
	if log == 0 || c.stored >= 0 {
		return
	}
	stored := storedTotals(t.w)
	for id, n := range t.inLogs(log) {
		if n > stored[id] {
			t.missing[id] = max(t.missing[id], n-stored[id])
		}
	}
}

// inLogs is, by counter, what came into the logs before one.
func (t *books) inLogs(before int) map[wirev1.ID]uint64 {
	sums := map[wirev1.ID]uint64{}
	for s, entries := range t.series {
		sums[s.id] += highest(entries, func(e *entered) bool { return e.log < before })
	}
	return sums
}

func highest(entries []entered, of func(*entered) bool) (n uint64) {
	for i := range entries {
		if e := &entries[i]; of(e) {
			n = max(n, e.cumulative)
		}
	}
	return n
}

func every(*entered) bool { return true }

// excess is, by counter, what owners counted that an earlier one had counted: where the replay holds no report of a slot, an
// owner begins at the base of the first that it reads, and what lies between that and what came before counts again.
func (t *books) excess() map[wirev1.ID]uint64 {
	sums := map[wirev1.ID]uint64{}
	for s, entries := range t.series {
		for i := range t.claims {
			if n := t.again(entries, i); n > 0 {
				sums[s.id] += n
			}
		}
	}
	return sums
}

func (t *books) again(entries []entered, claim int) uint64 {
	c, until := &t.claims[claim], int64(math.MaxInt64)
	for _, later := range t.claims[claim+1:] {
		if later.log == c.log && later.epoch > c.epoch {
			until = min(until, later.epoch)
		}
	}
	earlier := highest(entries, func(e *entered) bool { return e.log < c.log || e.log == c.log && e.offset <= max(c.stored, c.from-1) })
	var last, reached uint64
	first := true
	for i := range entries {
		e := &entries[i]
		if e.log != c.log || e.offset < c.from || e.offset >= until {
			continue
		}
		if first {
			last, first = e.base, false
		}
		if e.offset <= c.stored {
			last = max(last, e.cumulative)
		} else {
			reached = max(reached, e.cumulative)
		}
	}
	known := min(earlier, reached)
	return max(known, last) - last
}

// nameless: what its counter is called went with an earlier log, which nobody had read, and none of its pods, which have given
// up their slots since, says it again. What was reported of it cannot be counted.
func (t *books) nameless(id wirev1.ID) bool {
	log := t.log()
	if _, stored := t.w.store.Snapshot(lane)[id]; log == 0 || stored {
		return false
	}
	for s, entries := range t.series {
		for i := range entries {
			if s.id == id && entries[i].log == log && entries[i].text {
				return false
			}
		}
	}
	return true
}

// unacknowledged is what a run admitted to a counter beyond what its pod was told to be in the log.
func (t *books) unacknowledged(a account) uint64 {
	n := t.admitted[a]
	for s, acked := range t.acked {
		if s.account == a {
			n -= acked
		}
	}
	return n
}

// reported is what came into the logs of it.
func (t *books) reported(a account) (n uint64) {
	for s, entries := range t.series {
		if s.account == a {
			n += highest(entries, every)
		}
	}
	return n
}

// between is what was admitted to a counter after from.
func (t *books) between(id wirev1.ID, from quota.Time) (n uint64) {
	for _, c := range t.charges[id] {
		if c.at > from {
			n += c.cost
		}
	}
	return n
}

// spread is how much later or earlier than it was admitted an owner may take a unit for, of what came into the log
// after from.
func (t *books) spread(id wirev1.ID, from quota.Time) (late, early quota.Time) {
	for s, entries := range t.series {
		if s.id != id {
			continue
		}
		for i := range entries {
			if e := &entries[i]; e.at > from {
				late, early = max(late, e.way+e.span), max(early, e.span)
			}
		}
	}
	const rounding, lead = 3 * millisecond, 8 * millisecond
	return late + rounding, early + rounding + lead
}

// storedTotals are the totals in the store.
func storedTotals(w *world) map[wirev1.ID]uint64 {
	totals := map[wirev1.ID]uint64{}
	for id, c := range w.store.Snapshot(lane) {
		totals[id] = total(&c)
	}
	return totals
}

func total(c *store.Saved) uint64 {
	for _, f := range c.Fields {
		if f.Index == 0 {
			return f.Value
		}
	}
	return 0
}
