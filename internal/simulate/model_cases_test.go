package simulate

import (
	"errors"
	"testing"
	"time"

	"github.com/weirproxy/weir/aggregator/store"
	"github.com/weirproxy/weir/api/v1alpha1"
	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/internal/quota"
	"github.com/weirproxy/weir/internal/simulate/scenario"
)

// quiet is a fleet of two pods under one limit, with requests on both until 10 s, and nothing that goes wrong.
func quiet(t *testing.T) *model {
	t.Helper()
	window := v1alpha1.Duration{Duration: time.Second}
	usual := scenario.Delay{Min: 5 * time.Millisecond, Max: 20 * time.Millisecond}
	s := &scenario.Scenario{
		Name: t.Name(), Pods: 2, Duration: time.Minute, Arrivals: scenario.Poisson,
		Policy: &v1alpha1.QuotaPolicySpec{
			TargetRefs: []v1alpha1.TargetRef{{Kind: "Service", Name: "orders"}},
			Limits:     []v1alpha1.Limit{{Name: "all", Rates: []v1alpha1.Rate{{Limit: 150, Window: &window}}}},
		},
		Network: scenario.Network{Uplink: usual, Downlink: usual},
		Timing: scenario.Timing{
			Flush: 50 * time.Millisecond, Tick: 25 * time.Millisecond, IdleTick: 100 * time.Millisecond,
			StaleAfter: 500 * time.Millisecond, FallbackFloor: 0.5,
		},
		Traffic: []scenario.Source{{
			Pods: []int{0, 1}, Weights: []float64{1, 1}, Batch: 1, Rate: []scenario.Step{{At: 0, Value: 300}, {At: 10 * time.Second, Value: 0}},
		}},
	}
	w, err := newWorld(s, 1, newCellPool().lend())
	if err != nil {
		t.Fatal(err)
	}
	return newModel(w)
}

// end settles and verifies, and returns the counter's stored total, what was reported of it, and the excess allowed.
func (m *model) end(t *testing.T) (stored, reported, excess uint64) {
	t.Helper()
	if err := m.settle(); err != nil {
		t.Fatal(err)
	}
	m.verify()
	if err := m.failed(); err != nil {
		t.Error(err)
	}
	if len(m.ids) != 1 {
		t.Fatalf("%d counters, want one", len(m.ids))
	}
	id := m.ids[0]
	for _, p := range m.runs {
		reported += m.reported(account{p, id})
	}
	return storedTotals(m.w)[id], reported, m.excess()[id]
}

// cutAfterALostAck has pod 0 lose the acknowledgement of one report, and then reach no broker. It returns what that
// report holds beyond its base.
func (m *model) cutAfterALostAck(t *testing.T) uint64 {
	t.Helper()
	p, w := m.w.pods[0], m.w
	appended, held := w.hooks.appended, uint64(0)
	w.hooks.appended = func(run *pod, value []byte, sent quota.Time, offset int64) {
		appended(run, value, sent, offset)
		if run != p {
			return
		}
		m.entries(p, value, func(_ series, e *wirev1.UsageEntry) { held = e.GetCumulative() - e.GetBase() })
		if held > 0 {
			w.hooks.appended = appended
			p.cut, w.chance.ackLoss = true, 1
			w.after(0, func() { w.chance.ackLoss = 0 })
		}
	}
	w.run(w.at() + time.Second)
	if !p.cut || held == 0 {
		t.Fatalf("no report to lose the acknowledgement of: cut %v, %d units", p.cut, held)
	}
	return held
}

// The one exception to "never more": a pod's report is in the log and counted, the pod does not learn of it and
// reaches no broker, and the partition goes to an owner whose replay begins after that report. What the pod says
// next begins at the base of the report, which counts again: it, and no more.
func TestOneReportMayCountTwice(t *testing.T) {
	m := quiet(t)
	m.w.run(3 * time.Second)
	held := m.cutAfterALostAck(t)
	m.w.run(6 * time.Second)
	m.w.moveOwner(&scenario.Fault{Old: scenario.OldLeaves}) // cleanly: a replay of 2 s
	m.w.run(7 * time.Second)
	stored, reported, excess := m.end(t)
	if excess != held || stored != reported+held {
		t.Errorf("stored %d, reported %d: %d in excess, allowed %d, and the report held %d", stored, reported, int64(stored-reported), excess, held)
	}
}

// A topic made anew leaves no replay at all: the same exception, and as much, without any time away.
func TestOneReportMayCountTwiceInANewTopic(t *testing.T) {
	m := quiet(t)
	m.w.run(3 * time.Second)
	held := m.cutAfterALostAck(t)
	m.w.newTopic()
	m.w.run(m.w.at() + time.Second)
	stored, reported, excess := m.end(t)
	if unread := m.missing[m.ids[0]]; excess != held || stored > reported+held || stored+unread < reported+held {
		t.Errorf("stored %d, reported %d: allowed %d in excess and %d missing, and the report held %d", stored, reported, excess, unread, held)
	}
}

// Within the replay nothing counts twice, nor without another owner, however long the pod was away.
func TestAReportWhoseAckIsLostCountsOnce(t *testing.T) {
	for name, trouble := range map[string]func(*model){
		"a takeover within the replay": func(m *model) {
			m.w.run(4100 * time.Millisecond)
			m.w.moveOwner(&scenario.Fault{Old: scenario.OldLeaves})
			m.w.run(7 * time.Second)
		},
		"an owner that dies: a replay of 10 s": func(m *model) {
			m.w.run(7 * time.Second)
			m.w.moveOwner(&scenario.Fault{Old: scenario.OldDies, For: time.Second})
			m.w.run(9 * time.Second)
		},
		"no takeover": func(m *model) { m.w.run(9 * time.Second) },
	} {
		t.Run(name, func(t *testing.T) {
			m := quiet(t)
			m.w.run(3 * time.Second)
			m.cutAfterALostAck(t)
			trouble(m)
			if stored, reported, _ := m.end(t); stored != reported {
				t.Errorf("stored %d, reported %d", stored, reported)
			}
		})
	}
}

// An owner that is replaced and does not know goes on for a while: its writes to the store and its decisions are refused.
func TestAnOldOwnerIsRefused(t *testing.T) {
	m := quiet(t)
	m.w.run(3 * time.Second)
	old := m.w.owner()
	old.slow = 400 * time.Millisecond
	m.w.run(4 * time.Second)
	m.w.startOwner()
	m.w.run(8 * time.Second)
	if m.seen.fenced == 0 || m.seen.ignored == 0 {
		t.Errorf("%d writes and %d decisions of the old owner were refused, want some of both", m.seen.fenced, m.seen.ignored)
	}
	if err := old.p.Stopped(); !old.dead || !errors.Is(err, store.ErrFenced) {
		t.Errorf("the old owner has stopped: %v, with %v", old.dead, err)
	}
	if stored, reported, _ := m.end(t); stored != reported {
		t.Errorf("stored %d, reported %d", stored, reported)
	}
}

// Owner and Redis's data together (DESIGN 6): an owner claims, finds the record, and the data goes before it has loaded the
// counters. What was stored then is missing afterwards, no more than that; what pods report from then on counts.
func TestOwnerAndDataLostTogether(t *testing.T) {
	m := quiet(t)
	m.w.run(5 * time.Second)
	m.w.owner().kill()
	claim := m.w.hooks.claimed
	var stored uint64
	m.w.hooks.claimed = func(o *owner, before store.Record) {
		claim(o, before)
		m.w.hooks.claimed = claim
		stored = storedTotals(m.w)[m.ids[0]]
		m.lose(newMemory())
	}
	m.w.startOwner()
	m.w.run(8 * time.Second)
	got, reported, _ := m.end(t)
	if stored == 0 || got > reported || got < reported-stored {
		t.Errorf("stored %d of %d reported; %d were in the store that was lost", got, reported, stored)
	}
	if got == reported {
		t.Error("nothing is missing: say so in the design")
	}
}

// The store's data alone, or the owner alone, takes nothing away: the other has it, or the log.
func TestDataLostAlone(t *testing.T) {
	for name, trouble := range map[string]func(*model){
		"all, under a live owner": func(m *model) { m.lose(newMemory()) },
		"all, between owners": func(m *model) {
			m.w.owner().kill()
			m.w.run(m.w.at() + time.Second)
			m.lose(newMemory())
			m.w.startOwner()
		},
		"the last 50 ms, and the owner with it": func(m *model) {
			kept := &memory{m.w.store.Copy()}
			m.w.run(m.w.at() + 50*time.Millisecond)
			m.lose(kept)
			m.w.owner().kill()
			m.w.startOwner()
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := quiet(t)
			m.w.run(5 * time.Second)
			trouble(m)
			m.w.run(8 * time.Second)
			if stored, reported, _ := m.end(t); stored != reported {
				t.Errorf("stored %d, reported %d", stored, reported)
			}
		})
	}
}

// A topic made anew takes away no more than what the old owner had not read; what it counted is handed over.
func TestTopicMadeAnewKeepsWhatWasRead(t *testing.T) {
	m := quiet(t)
	m.w.run(5 * time.Second)
	old := m.w.owner()
	read, id := uint64(0), m.ids[0]
	for s, entries := range m.series {
		if s.id == id {
			read += highest(entries, func(e *entered) bool { return e.offset < old.next })
		}
	}
	if n := old.p.Gauges(m.w.now).Waiting; n != 0 {
		t.Fatalf("%d entries wait", n)
	}
	m.w.newTopic()
	m.w.run(5*time.Second + takeover/2) // the next owner has not claimed yet
	if got := storedTotals(m.w)[id]; got != read {
		t.Errorf("the old owner handed over %d units, and had read %d", got, read)
	}
	m.w.run(8 * time.Second)
	m.end(t)
}
