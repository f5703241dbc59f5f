package quota

import (
	"testing"
	"time"
	"unsafe"
)

// DESIGN 5: a counter is a fixed number of 64-byte lines of 64-bit words, so that another process could map it.
func TestACellIsWholeLines(t *testing.T) {
	if size := unsafe.Sizeof(Cell{}); size != CellWords*8 || size%64 != 0 {
		t.Errorf("%d bytes for %d words", size, CellWords)
	}
}

// DESIGN 3: without a record a pod admits what its own window lets it, M/n and 2 more, and never beyond M.
func TestColdCounterAdmitsItsPartAndTwoMore(t *testing.T) {
	for _, c := range []struct{ limit, pods, want int }{{100, 10, 12}, {100, 1, 100}, {10, 100, 2}, {1, 3, 1}} {
		f := newFixture(perSecond(float64(c.limit)), c.pods)
		if got := f.admit(3 * c.limit); got != c.want {
			t.Errorf("limit %d on %d pods: %d at once, want %d", c.limit, c.pods, got, c.want)
		}
	}
}

// Strict below 4 units a pod runs as Normal: it would refuse nearly everything.
func TestStrictThatCannotBeRunsAsNormal(t *testing.T) {
	r := perSecond(100)
	r.Strict = true
	strict, normal := newFixture(r, 50), newFixture(perSecond(100), 50)
	if a, b := strict.admit(100), normal.admit(100); a != b || a == 2 {
		t.Errorf("%d pass, %d of a normal one", a, b)
	}
}

// ALGORITHM 8: what a pod may take beyond its share while there is slack is a policy's choice.
func TestOvercommitIsAPolicysChoice(t *testing.T) {
	passed := func(o Overcommit, part float64) int {
		r := perSecond(1000)
		r.Overcommit, r.OvercommitPart = o, part
		f := newFixture(r, 100)
		d := decision(r, 500, 500)
		d.ShareSum, d.Epsilon = 500, 5 // a hundredth for this pod: 5
		f.told(d)
		return f.admit(400)
	}
	none, fixed := passed(OvercommitNone, 0), passed(OvercommitFixed, 0.5)
	if none > 6 {
		t.Errorf("None: %d of a share of 5", none)
	}
	if fixed < 100 || fixed > 300 {
		t.Errorf("half of the 500 left: %d pass", fixed)
	}
}

// A pod whose policy is newer than a paced record paces by its own rate.
func TestPacedGrantFollowsTheNewRate(t *testing.T) {
	f := newFixture(perSecond(1000), 1)
	r := decision(f.Rule(), 1000, 3000)
	r.Paced, r.Grant, r.ShareSum, r.Epsilon = true, 1000, 1, 1
	f.told(r)
	var v view
	f.cell.read(&f.fresh, &v)
	before := v.g
	f.SetRule(perSecond(250), f.now)
	f.cell.read(&f.fresh, &v)
	near(t, "grant at a quarter of the rate", v.g, before/4, before*1e-9)
}

// The owner keeps what pods reported for as long as the window: a late repeat must find it.
func TestALongWindowsStateIsKeptAsLong(t *testing.T) {
	l := loader{total: NewTotal(&Rule{Algorithm: SlidingWindow, Limit: 1000, Window: 10 * time.Minute}, d0)}
	l.add(d0, 300, 100)
	tick(l.total, d0+25, 1)
	for _, minutes := range []Millis{2, 9} {
		at := d0 + minutes*60_000
		l.total.Ingest(&Usage{Pod: 1, Epoch: 1, Made: 1, Cumulative: 300, Appended: at}, true)
		if l.total.Idle(at) || l.total.Admitted() != 300 {
			t.Fatalf("after %d min: idle %v, %d counted", minutes, l.total.Idle(at), l.total.Admitted())
		}
	}
	if !l.total.Idle(d0 + 30*60_000) {
		t.Error("never idle")
	}
	if keep := l.total.Keep(); keep < 11*time.Minute {
		t.Errorf("the store keeps it for %v, want the window and a minute", keep)
	}
}

// What a counter costs beside its cell is its size class in Go's heap; the figures of docs/design/memory.md rest on it.
func TestAControlSideIsSmall(t *testing.T) {
	if size := unsafe.Sizeof(Counter{}); size > 256 {
		t.Errorf("a counter takes %d bytes", size)
	}
	if size := unsafe.Sizeof(decided{}); size > 160 {
		t.Errorf("a decision takes %d bytes", size)
	}
}
