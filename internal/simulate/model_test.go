package simulate

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"google.golang.org/protobuf/proto"

	"github.com/weirproxy/weir/aggregator/partition"
	"github.com/weirproxy/weir/aggregator/store"
	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/internal/bus"
	"github.com/weirproxy/weir/internal/quota"
)

const (
	modelSeeds = 300
	modelLong  = 3 * time.Minute
	// settleWithin is how long a fleet may take to have counted everything once all is well again: two fenced pauses,
	// and as long as an entry waits for its text.
	settleWithin = 60 * time.Second
)

// Whatever is lost, repeated, reordered or late, whoever restarts, and whoever owned the partition, each unit that was
// admitted counts once. WEIR_SEED runs one schedule, WEIR_LONG as many as there is time for.
func TestModel(t *testing.T) {
	if text := os.Getenv("WEIR_SEED"); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("WEIR_SEED: %v", err)
		}
		s := newSchedule(seed)
		t.Log(s)
		seen, err := runSchedule(s, newCellPool())
		t.Logf("%+v", seen)
		if err != nil {
			t.Error(err)
		}
		return
	}
	seen := checkAll(t)
	t.Logf("%+v", seen)
	seen.must(t)
}

// checkAll checks schedules of seeds from 1 on.
func checkAll(t *testing.T) (sum seen) {
	var mu sync.Mutex
	var workers sync.WaitGroup
	pool, until := newCellPool(), time.Now().Add(modelLong)
	next := uint64(0)
	take := func() (uint64, bool) {
		mu.Lock()
		defer mu.Unlock()
		next++
		if os.Getenv("WEIR_LONG") != "" {
			return next, time.Now().Before(until) && !t.Failed()
		}
		return next, next <= modelSeeds
	}
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for {
				seed, more := take()
				if !more {
					return
				}
				s := newSchedule(seed)
				one, err := runSchedule(s, pool)
				if err != nil {
					t.Errorf("%v\n%vWEIR_SEED=%d go test -run 'TestModel$' ./internal/simulate", err, s, seed)
				}
				mu.Lock()
				sum.add(&one)
				mu.Unlock()
			}
		})
	}
	workers.Wait()
	return sum
}

// seen is how often something came up that the check is about.
type seen struct {
	schedules, counters     int
	exact                   int // counters of which nothing may be missing or in excess
	filled                  int // counters whose window was looked at, not empty
	missing, excess         int // counters that lost some, or hold some twice
	killed, terminated      int // runs
	lost, admitted          uint64
	remade                  int // slots given back and made again
	fenced, ignored         int // writes and decisions of earlier owners
	owners, logs, storeLost int
}

func (s *seen) add(o *seen) {
	s.schedules += o.schedules
	s.counters += o.counters
	s.exact += o.exact
	s.filled += o.filled
	s.missing += o.missing
	s.excess += o.excess
	s.killed += o.killed
	s.terminated += o.terminated
	s.lost += o.lost
	s.admitted += o.admitted
	s.remade += o.remade
	s.fenced += o.fenced
	s.ignored += o.ignored
	s.owners += o.owners
	s.logs += o.logs
	s.storeLost += o.storeLost
}

// must: schedules that met none of it would say nothing.
func (s *seen) must(t *testing.T) {
	for what, n := range map[string]int{
		"windows": s.filled, "killed pods": s.killed, "terminated pods": s.terminated, "slots made again": s.remade,
		"refused writes": s.fenced, "ignored decisions": s.ignored, "losses of the store": s.storeLost, "logs made anew": s.logs - s.schedules,
	} {
		if n == 0 {
			t.Errorf("no schedule had %s", what)
		}
	}
	if s.exact*10 < s.counters*7 {
		t.Errorf("only %d of %d counters could be held to the unit", s.exact, s.counters)
	}
}

// model is one schedule being run.
type model struct {
	*books
	w         *world
	seen      seen
	restarts  int
	holder    *owner               // the newest claim that the store knows; nil: it may have lost it
	epochs    map[heardUnder]int64 // the newest that a pod heard of
	stirred   quota.Time           // until when the store, or an owner's way to it, was slow
	unnoticed bool                 // the store lost something, and the newest owner has written nothing since
	wrong     []string
}

// heardUnder is a pod under one log, whose owners' epochs compare.
type heardUnder struct {
	run *pod
	log bus.TopicID
}

// runSchedule runs a schedule, and then holds each counter against the truth.
func runSchedule(s *schedule, pool *cellPool) (seen, error) {
	lent := pool.lend()
	defer lent.giveBack()
	w, err := newWorld(s.s, s.seed, lent)
	if err != nil {
		return seen{}, err
	}
	m := newModel(w)
	for _, e := range s.events {
		w.when(e.at, func() { e.do(m) })
	}
	w.run(s.end)
	if err := m.settle(); err != nil {
		return m.seen, err
	}
	m.verify()
	return m.seen, m.failed()
}

func newModel(w *world) *model {
	m := &model{w: w, books: newBooks(w), epochs: map[heardUnder]int64{}}
	claim := w.hooks.claimed
	w.hooks.claimed = func(o *owner, before store.Record) {
		m.holder = o
		m.stir(0)
		claim(o, before)
	}
	w.hooks.flushed, w.hooks.heard = m.flushed, m.heard
	return m
}

func (m *model) fail(format string, args ...any) {
	m.wrong = append(m.wrong, fmt.Sprintf(format, args...))
}

func (m *model) failed() error {
	if m.books.err != nil {
		return m.books.err
	}
	if len(m.wrong) == 0 {
		return nil
	}
	return errors.New(strings.Join(m.wrong, "\n"))
}

// stir notes that for a while windows may be known later than reports say.
func (m *model) stir(span time.Duration) {
	m.stirred = max(m.stirred, m.w.now+quota.Time(span))
}

// lose has the store come back with what was kept. Of a counter that the newest owner does not have in memory, what was
// not kept is gone.
func (m *model) lose(kept *memory) {
	before := storedTotals(m.w)
	m.w.store.Memory = kept.Memory
	m.seen.storeLost++
	m.unnoticed = true
	m.holder = nil
	m.stir(0)
	after := storedTotals(m.w)
	for id, n := range before {
		if n > after[id] && !m.mirrored(id) {
			m.missing[id] += n - after[id]
		}
	}
}

func (m *model) mirrored(id wirev1.ID) bool {
	b, ok := m.belief(id)
	return ok && b.Phase == "live"
}

func (m *model) belief(id wirev1.ID) (partition.Belief, bool) {
	o := m.w.owner()
	if o.dead || o.p == nil {
		return partition.Belief{}, false
	}
	b := o.p.Inspect(partition.Query{ID: id}, m.w.now)
	if len(b) == 0 {
		return partition.Belief{}, false
	}
	return b[0], true
}

// flushed: a write of an owner that is not the newest is refused.
func (m *model) flushed(o *owner, err error) {
	if err == nil && o == m.w.owner() {
		m.unnoticed = false
	}
	switch {
	case m.holder == nil || o == m.holder:
	case errors.Is(err, store.ErrFenced):
		m.seen.fenced++
	case !errors.Is(err, store.ErrUnavailable):
		m.fail("%v: a write of %s is taken (%v), although %s has claimed the partition", m.w.at(), o.name, err, m.holder.name)
	}
}

// heard: a decision of another log, or of an owner older than the newest that the pod heard of, changes none of its records.
func (m *model) heard(p *pod, d *decision, take func()) {
	var b wirev1.DecisionBatch
	if err := proto.Unmarshal(d.value, &b); err != nil {
		m.fail("a batch cannot be read: %v", err)
	}
	under := heardUnder{p, p.log}
	newest, known := m.epochs[under]
	if string(b.Header.LogId) == string(p.log[:]) && (!known || b.Header.Epoch >= newest) {
		m.epochs[under] = b.Header.Epoch
		take()
		return
	}
	before, batches := records(p), testutil.ToFloat64(p.agent.Metrics().Batches)
	take()
	m.seen.ignored++
	if after := records(p); !maps.Equal(before, after) || testutil.ToFloat64(p.agent.Metrics().Batches) != batches {
		m.fail("%v: pod %s takes up a decision of owner epoch %d after %d", m.w.at(), p.name, b.Header.Epoch, newest)
	}
}

type record struct {
	epoch    int64
	sequence uint64
}

// records are the decisions that a pod stands on.
func records(p *pod) map[wirev1.ID]record {
	out := map[wirev1.ID]record{}
	for _, s := range p.drive.Slots() {
		if h, _, ok := s.Counter.Record(); ok {
			out[s.ID] = record{h.Epoch, h.Sequence}
		}
	}
	return out
}

// A seed says all: what comes of it, comes of it again.
func TestModelRunsAgainTheSame(t *testing.T) {
	for seed := range uint64(10) {
		first, err := runSchedule(newSchedule(seed), newCellPool())
		again, errAgain := runSchedule(newSchedule(seed), newCellPool())
		if first != again || err != nil || errAgain != nil {
			t.Errorf("seed %d: %+v, then %+v (%v, %v)", seed, first, again, err, errAgain)
		}
	}
}
