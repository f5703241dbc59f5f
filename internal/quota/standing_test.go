package quota

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// What a counter says it may go to is what checks let it go to, whatever it stands on: a request passes if its unit still fits,
// and of a pod that is thinned none passes beyond it.
func TestStandingIsWhatChecksGoBy(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rule := perSecond(float64(rapid.IntRange(1, 400).Draw(t, "limit")))
		rule.Overcommit = Overcommit(rapid.IntRange(0, 2).Draw(t, "overcommit")) //nolint:gosec // of three
		rule.OvercommitPart = 0.25
		rule.Strict = rapid.Bool().Draw(t, "strict")
		f := newFixture(rule, rapid.IntRange(1, 20).Draw(t, "pods"))
		f.rnd = NewRand(rapid.Uint64().Draw(t, "chance"))
		f.fresh.SetLead(time.Duration(rapid.IntRange(0, 8).Draw(t, "lead")) * time.Millisecond)
		for offset := range int64(rapid.IntRange(1, 6).Draw(t, "rounds")) {
			if rapid.Bool().Draw(t, "told") {
				r := decision(rule, float64(rapid.IntRange(0, int(rule.Limit)).Draw(t, "left")), float64(rapid.IntRange(1, 900).Draw(t, "demand")))
				r.Paced = rapid.Bool().Draw(t, "paced")
				r.Expire1 = r.Content / 8
				r.Expire2 = r.Content / 4
				f.told(r)
			} else {
				f.heard()
			}
			for range rapid.IntRange(1, 60).Draw(t, "requests") {
				before := f.Standing(f.now)
				fits := before.Counted+1 <= before.Most+1e-9 && before.Left > 0
				switch passed := f.check(1).OK; {
				case passed && !fits:
					t.Fatalf("passed beyond %+v", before)
				case fits && !passed && !before.Thinned && before.Counted+1 < before.Most-1e-9:
					t.Fatalf("refused below %+v", before)
				case passed && f.Standing(f.now).Counted != before.Counted+1:
					t.Fatalf("a unit changed %+v to %+v", before, f.Standing(f.now))
				}
				f.wait(time.Duration(rapid.IntRange(0, 4).Draw(t, "pause")) * time.Millisecond)
			}
			f.reported(offset)
			f.wm = offset
		}
	})
}

func TestStandingNamesTheHeaderItStandsOn(t *testing.T) {
	f := newFixture(perSecond(100), 10)
	f.admit(5)
	if s := f.Standing(f.now); s.Basis != BasisCold || s.Watermark != -1 || s.Counted != 5 || s.Most != 12 {
		t.Errorf("cold: %+v", s)
	}
	f.reported(3)
	f.wm = 3
	f.told(decision(f.Rule(), 60, 100))
	if s := f.Standing(f.now); s.Renewed || s.Watermark != 3 || s.Sequence != f.seq || s.Counted != 0 {
		t.Errorf("a record: %+v", s)
	}
	f.admit(2)
	f.reported(7)
	f.wait(ticking)
	f.wm = 7
	f.heard()
	s := f.Standing(f.now)
	if !s.Renewed || s.Watermark != 7 || s.Sequence != f.seq || s.Counted != 0 {
		t.Errorf("a header that renews it: %+v", s)
	}
	near(t, "left", s.Left, 58, 0)
	near(t, "guessed", s.Guessed, 0, 0)
	f.wait(time.Millisecond)
	r := decision(f.Rule(), 60, 100)
	r.Expire1, r.Expire2 = 5, 5
	f.told(r)
	f.wait(time.Second / 3) // the second knot
	near(t, "guessed of a record", f.Standing(f.now).Guessed, (f.Standing(f.now).Left - 65), 1e-9)
	f.heard()
	f.wait(30 * time.Millisecond)
	near(t, "guessed of a renewed record", f.Standing(f.now).Guessed, 2.5, 1e-9)
	f.wait(DefaultStaleAfter + 1)
	if s := f.Standing(f.now); s.Basis != BasisFallback || s.Most != 0 {
		t.Errorf("no fresh header: %+v", s)
	}
}
