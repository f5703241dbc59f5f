package quota

import (
	"testing"
	"time"
)

// load ingests n units of one pod at owner time at.
type loader struct {
	total      *Total
	cumulative uint64
	offset     int64
}

func (l *loader) add(at Millis, n uint64, demand float64) (urgent bool) {
	l.cumulative += n
	l.offset++
	_, urgent = l.total.Ingest(&Usage{
		Pod: 1, Epoch: 1, Made: 1, Cumulative: l.cumulative, Demand: demand, Appended: at, Offset: l.offset,
	}, true)
	return urgent
}

// ALGORITHM 9: far from the limit hardly anything is sent, near it each tick.
func TestRecordsAreSuppressedUntilTheyMatter(t *testing.T) {
	l := loader{total: NewTotal(perSecond(10_000), d0)}
	sent := 0
	at := d0
	for range 400 { // 10 s at 0.2 of the limit
		at += 25
		l.add(at, 50, 2000)
		if _, v := tick(l.total, at, 1); v.Send {
			sent++
		}
	}
	if sent == 0 || sent > 60 {
		t.Errorf("%d records in 400 quiet ticks", sent)
	}
	for range 40 {
		at += 25
		l.add(at, 300, 12_000)
		tick(l.total, at, 1)
	}
	for range 20 {
		at += 25
		l.add(at, 250, 12_000)
		if _, v := tick(l.total, at, 1); !v.Send || !v.Hot {
			t.Fatal("a hot counter was not sent")
		}
	}
}

func TestSuppressionStaysWithinTheMargin(t *testing.T) {
	l := loader{total: NewTotal(perSecond(10_000), d0)}
	rnd := NewRand(1)
	at, told := d0, 10_000.0
	for range 2000 {
		at += 25
		l.add(at, rnd.Uint64()%100, 1000)
		r, v := tick(l.total, at, 1)
		if v.Send {
			told = r.Remaining
		}
		if d := r.Remaining - told; d > renewMargin*10_000 || d < -renewMargin*10_000 {
			t.Fatalf("pods go by %v, but %v are left", told, r.Remaining)
		}
	}
}

func TestUntouchedCounterIsNotSent(t *testing.T) {
	total := NewTotal(perSecond(3), d0) // so small that R < 4 is no news
	if _, v := tick(total, d0+25, 1); v.Send || v.Hot {
		t.Errorf("%+v", v)
	}
	if due := total.Due(); due < d0+1e9 {
		t.Errorf("a tick is due at %d", due-d0)
	}
}

func TestPodAfterSilenceIsTold(t *testing.T) {
	l := loader{total: NewTotal(&Rule{Algorithm: SlidingWindow, Limit: 1000, Window: time.Hour}, d0)}
	at := d0
	l.add(at, 400, 0)
	tick(l.total, at+25, 1)
	at += 1500
	l.add(at, 1, 0)
	if _, v := tick(l.total, at+25, 1); !v.Send {
		t.Error("a pod that may hold no record was not told that 0.6 is left")
	}
	l.add(at+100, 1, 0)
	if _, v := tick(l.total, at+125, 1); v.Send {
		t.Error("told again")
	}
}

// An exhausted long window is sent when it changes and each 5 s, not each tick.
func TestBlockedCounterIsRepeated(t *testing.T) {
	l := loader{total: NewTotal(&Rule{Algorithm: SlidingWindow, Limit: 100, Window: time.Minute}, d0)}
	at := d0
	l.add(at, 100, 500)
	var last Record
	sent := 0
	for range 480 { // 12 s
		at += 25
		l.add(at, 0, 500)
		r, v := tick(l.total, at, 1)
		if v.Send {
			sent++
			last = r
		}
	}
	if sent < 3 || sent > 12 {
		t.Errorf("%d records in 12 s of a blocked counter", sent)
	}
	near(t, "blocked for, s", last.BlockedFor.Seconds()+float64(l.total.sentAt-d0)/1000, 61, 0.01)
	at = d0 + 61_000
	if r, v := tick(l.total, at, 1); !v.Send || r.BlockedFor != 0 || r.Remaining != 100 {
		t.Errorf("not told of the end: %+v %+v", v, r)
	}
}

// Case 5: the end of the block is fixed by the window, whatever is refused meanwhile.
func TestCase05RefusalsDoNotMoveTheReset(t *testing.T) {
	l := loader{total: NewTotal(&Rule{Algorithm: SlidingWindow, Limit: 10, Window: 10 * time.Second}, d0)}
	l.add(d0, 10, 100)
	end := Millis(0)
	for at := d0 + 25; at < d0+10_000; at += 25 {
		l.add(at, 0, 100)
		r, _ := tick(l.total, at, 1)
		if e := at + Millis(r.BlockedFor/time.Millisecond); end != 0 && e != end {
			t.Fatalf("the end moved from %d to %d", end-d0, e-d0)
		} else {
			end = e
		}
	}
	near(t, "end, ms", float64(end-d0), 10_000, 10_000.0/60+1)
}

func TestChangedAmountIsSentToThoseWhoHoldOne(t *testing.T) {
	l := loader{total: NewTotal(perSecond(1000), d0)}
	l.add(d0, 300, 10)
	tick(l.total, d0+25, 1)
	higher := *perSecond(2000)
	higher.PolicyVersion = 9
	l.total.SetRule(&higher)
	r, v := tick(l.total, d0+50, 1)
	if !v.Send || r.Amount != 2000 || r.Remaining != 1700 || r.PolicyVersion != 9 {
		t.Errorf("%+v %+v", v, r)
	}
	same := higher
	same.PolicyVersion = 10
	l.total.SetRule(&same)
	if r, v := tick(l.total, d0+75, 1); !v.Send || r.PolicyVersion != 10 {
		t.Error("a new version of the same amount was not sent")
	}
	other := NewTotal(perSecond(1000), d0)
	other.SetRule(&higher)
	if _, v := tick(other, d0+50, 1); v.Send {
		t.Error("sent a record of a counter that nobody holds one of")
	}
}

func TestRestoredCounterIsSentOnce(t *testing.T) {
	l := loader{total: NewTotal(perSecond(1000), d0)}
	l.add(d0, 10, 0) // less than would be news: but pods may hold another record of it
	heir := NewTotal(perSecond(1000), d0+100)
	heir.Restore(l.total.ExportAll(nil), d0+100)
	if r, v := tick(heir, d0+125, 1); !v.Send || r.Remaining != 990 {
		t.Errorf("%+v %+v", v, r)
	}
	if _, v := tick(heir, d0+150, 1); v.Send {
		t.Error("sent twice")
	}
}

// A record that the budget held back is offered again.
func TestUnsentRecordIsOfferedAgain(t *testing.T) {
	l := loader{total: NewTotal(perSecond(1000), d0)}
	l.add(d0, 300, 0)
	m := moment(d0+25, 1)
	for range 3 {
		if _, v := l.total.Tick(m); !v.Send {
			t.Fatal("forgotten")
		}
		m.Now += 25
	}
}

func TestUrgentIngest(t *testing.T) {
	l := loader{total: NewTotal(perSecond(1000), d0)}
	tick(l.total, d0, 1)
	if l.add(d0+10, 200, 0) {
		t.Error("urgent below a quarter of what is left")
	}
	if !l.add(d0+12, 100, 0) {
		t.Error("not urgent at 300 of 1000")
	}
	tick(l.total, d0+12, 1)
	if l.add(d0+14, 400, 0) {
		t.Error("urgent within 5 ms of the last tick")
	}
}

// Due must never be later than the first tick that would send.
func TestDueIsNeverTooLate(t *testing.T) {
	for _, rule := range []*Rule{
		perSecond(1000), tokens(100, 1000), daily(1000), {Algorithm: SlidingWindow, Limit: 1000, Window: time.Minute},
	} {
		l := loader{total: NewTotal(rule, d0)}
		l.add(d0, uint64(rule.Amount()), 50)
		at := d0
		due := l.total.Due()
		for range 10_000 {
			at += 25
			r, v := l.total.Tick(moment(at, 1))
			if v.Send && at+25 <= due {
				t.Fatalf("algorithm %d: sends at %d, due at %d", rule.Algorithm, at-d0, due-d0)
			}
			if v.Send {
				l.total.Sent(&r)
			}
			due = l.total.Due()
			if due > at+1e8 {
				break
			}
		}
	}
}

func TestIdleCounterIsForgotten(t *testing.T) {
	l := loader{total: NewTotal(perSecond(1000), d0)}
	l.add(d0, 300, 100)
	tick(l.total, d0+25, 1)
	if l.total.Idle(d0 + 59_000) {
		t.Error("idle while a late report could be counted twice")
	}
	if !l.total.Idle(d0 + 62_000) {
		t.Error("never idle")
	}
}
