package quota

import (
	"testing"
	"time"
	_ "time/tzdata"

	"pgregory.net/rapid"
)

var zones = []string{
	"UTC", "Asia/Singapore", "Asia/Kolkata", "Asia/Kathmandu", "Europe/London", "America/New_York", "America/Sao_Paulo",
	"America/Havana", "Asia/Beirut", "Africa/Cairo", "Australia/Lord_Howe", "Pacific/Apia", "America/St_Johns", "Asia/Tehran",
}

// civil is the period's name on a clock that shows t: what must not change within a period and must change at its
// end.
func civil(p Period, t time.Time) [4]int {
	y, m, d := t.Date()
	switch p {
	case Hour:
		return [4]int{y, int(m), d, t.Hour()}
	case Week:
		iso, week := t.ISOWeek()
		return [4]int{iso, week}
	case Month:
		return [4]int{y, int(m)}
	case Year:
		return [4]int{y}
	}
	return [4]int{y, int(m), d}
}

func TestPeriodsAgreeWithCivilTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		loc, err := time.LoadLocation(rapid.SampledFrom(zones).Draw(t, "zone"))
		if err != nil {
			t.Skip(err)
		}
		p := Period(rapid.IntRange(int(Hour), int(Year)).Draw(t, "period"))
		at := Millis(rapid.Int64Range(time.Date(2005, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli(),
			time.Date(2037, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()).Draw(t, "at"))
		start, end := PeriodAt(p, loc, at)
		if at < start || at >= end {
			t.Fatalf("[%d, %d) does not hold %d", start, end, at)
		}
		show := func(at Millis) time.Time { return time.UnixMilli(int64(at)).In(loc) }
		for _, in := range []Millis{start, end - 1} {
			if civil(p, show(in)) != civil(p, show(at)) {
				t.Fatalf("%v and %v are one period", show(in), show(at))
			}
		}
		if p != Hour && (civil(p, show(start-1)) == civil(p, show(at)) || civil(p, show(end)) == civil(p, show(at))) {
			t.Fatalf("the period of %v goes on outside [%v, %v)", show(at), show(start), show(end))
		}
		for _, in := range []Millis{start, end - 1, end, start - 1} {
			s, e := PeriodAt(p, loc, in)
			if in >= start && in < end && (s != start || e != end) || in == end && s != end || in == start-1 && e != start {
				t.Fatalf("periods do not tile: [%d, %d) and [%d, %d)", start, end, s, e)
			}
		}
	})
}

func TestPeriodsAcrossDaylightSaving(t *testing.T) {
	hours := func(d time.Duration) int { return int(d / time.Hour) }
	for _, c := range []struct {
		zone, day string
		hours     int
	}{
		{"America/New_York", "2026-03-08", 23}, {"America/New_York", "2026-11-01", 25}, {"America/New_York", "2026-07-04", 24},
		{"America/Sao_Paulo", "2018-11-04", 23},                                    // no midnight: the day begins at 01:00
		{"America/Havana", "2026-03-08", 23}, {"America/Havana", "2026-11-01", 25}, // midnight comes twice
		{"Asia/Singapore", "2026-11-29", 24},
	} {
		loc, err := time.LoadLocation(c.zone)
		if err != nil {
			t.Fatal(err)
		}
		noon, err := time.ParseInLocation("2006-01-02 15", c.day+" 12", loc)
		if err != nil {
			t.Fatal(err)
		}
		start, end := PeriodAt(Day, loc, Millis(noon.UnixMilli()))
		if got := hours(time.Duration(end-start) * time.Millisecond); got != c.hours {
			t.Errorf("%s %s has %d hours, want %d", c.zone, c.day, got, c.hours)
		}
	}
}

// A day's counter on a pod: what came before the reset is reported as such, and the new day begins at once.
func TestCalendarSplitsAtReset(t *testing.T) {
	f := newFixture(daily(1000), 1)
	_, end := PeriodAt(Day, time.UTC, d0)
	f.now = t0 + Time(end-d0-30)*ms // 30 ms before midnight
	f.heard()
	f.admit(300)
	f.reported(1)
	f.wm = 1
	r := decision(f.Rule(), 0, 10) // exhausted elsewhere
	r.ResetIn, r.BlockedFor = 30*time.Millisecond, 30*time.Millisecond
	f.told(r)
	if o := f.check(1); o.OK || o.RetryAfter != 30*time.Millisecond {
		t.Errorf("before midnight: %+v", o)
	}
	f.SetRule(daily(2000), f.now)
	f.wait(10 * time.Millisecond)
	if got := f.admit(50); got != 50 {
		t.Fatalf("admitted %d of a raised limit", got)
	}
	f.wait(25 * time.Millisecond) // 5 ms past it
	if got := f.admit(70); got != 70 {
		t.Fatalf("admitted %d in the new day", got)
	}
	f.wait(20 * time.Millisecond)
	e, n := f.reported(2)
	if n != 2 || e[0].Cumulative != 350 || e[1].Cumulative != 420 {
		t.Fatalf("%d entries: %+v", n, e)
	}
	if e[0].Age != 26*time.Millisecond || e[1].Age != 20*time.Millisecond {
		t.Errorf("ages %v and %v", e[0].Age, e[1].Age)
	}
	if st := f.State(f.now); st.Unincluded != 70 {
		t.Errorf("the new day counts %v", st.Unincluded)
	}
	// A record of the old day that comes late changes nothing; one of the new day does.
	old := decision(f.Rule(), 0, 10)
	old.ResetIn = 0
	h := f.header()
	h.OwnerTime = end - 10
	old.ResetIn = 10 * time.Millisecond
	if f.Apply(h, old, f.now, &f.rnd) {
		t.Error("took a record of yesterday")
	}
	fresh := decision(f.Rule(), 1900, 10)
	fresh.ResetIn = 24*time.Hour - 25*time.Millisecond
	if !f.told(fresh) {
		t.Error("refused today's record")
	}
	e, n = f.reported(3)
	if n != 0 {
		t.Errorf("reported again: %+v", e)
	}
}

// ALGORITHM 7, number 5, pod side: an exhausted day ends for checks at midnight itself, without waiting for the control
// goroutine or the owner.
func TestCalendarOpensAtReset(t *testing.T) {
	f := newFixture(daily(100), 1)
	_, end := PeriodAt(Day, time.UTC, d0)
	f.now = t0 + Time(end-d0-10)*ms
	f.heard()
	f.Flush(f.now, flushing, false)
	r := decision(f.Rule(), 0, 1000)
	r.ResetIn, r.BlockedFor = 10*time.Millisecond, 10*time.Millisecond
	r.ShareSum = r.Epsilon // the only pod
	f.told(r)
	f.wait(9 * time.Millisecond)
	if f.check(1).OK {
		t.Error("admitted in the exhausted day")
	}
	f.wait(time.Millisecond)
	near(t, "admitted at once in the new day", float64(f.admit(500)), 100, 1)
}

func TestCalendarCounterNeverUsedRollsOn(t *testing.T) {
	f := newFixture(daily(10), 1)
	f.admit(10)
	f.reported(1)
	for range 3 {
		f.wait(24 * time.Hour)
		f.heard()
		if got := f.admit(20); got != 10 {
			t.Fatalf("admitted %d in a day of 10", got)
		}
		f.reported(1)
	}
}

// A reset that comes while the last report of the old period is under way leaves nothing to split once that is
// acknowledged: the counter is settled, and may be evicted.
func TestCalendarResetDuringAReportSettles(t *testing.T) {
	f := newFixture(daily(1000), 1)
	_, end := PeriodAt(Day, time.UTC, d0)
	f.now = t0 + Time(end-d0-10)*ms
	f.heard()
	f.admit(5)
	if _, n := f.Flush(f.now, flushing, false); n != 1 {
		t.Fatalf("%d entries", n)
	}
	f.wait(20 * time.Millisecond)
	f.Observe(f.now, flushing) // rolls on
	f.Acknowledge(1, f.date(), f.now)
	if f.Dirty() || !f.Settled() {
		t.Errorf("dirty %v, settled %v", f.Dirty(), f.Settled())
	}
	f.admit(3)
	if e, n := f.reported(2); n != 1 || e[0].Cumulative != 8 || e[0].Base != 5 {
		t.Errorf("%d entries in the new day: %+v", n, e)
	}
}

// A bucket that takes longer to fill than a duration can say is a slow bucket, not one of no time at all.
func TestABucketOfAgesIsSlow(t *testing.T) {
	r := &Rule{Algorithm: TokenBucket, Limit: 1, Window: 31 * 24 * time.Hour, Burst: 1e15}
	if w := r.WindowAt(d0); w < 50*365*24*time.Hour {
		t.Errorf("it fills in %v", w)
	}
	f := newFixture(r, 1)
	if o := f.check(1_000_000); !o.OK || o.Reset < 0 {
		t.Errorf("%+v", o)
	}
}
