package quota

import "time"

// PeriodAt returns the civil period that holds t, [start, end), as time zone loc (nil: UTC) has it.
// Days, weeks (from Monday), months and years begin at the first instant of their first civil day,
// whatever daylight saving does to midnight. An hour begins where the clock shows a full hour.
// Periods tile: the period that holds end begins at end.
func PeriodAt(p Period, loc *time.Location, t Millis) (start, end Millis) {
	if loc == nil {
		loc = time.UTC
	}
	if p == Hour || p == NoPeriod {
		return hourAt(loc, t)
	}
	// A clock set back over midnight shows yesterday's date after today began: the period that has
	// begun stays, so step on until t is inside.
	civil := time.UnixMilli(int64(t)).In(loc)
	for step := 0; ; step++ {
		start, end = firstInstant(p, loc, civil, step), firstInstant(p, loc, civil, step+1)
		if t < end || step == 2 {
			return start, end
		}
	}
}

// firstInstant is the beginning of the period that lies steps after the one whose civil dates hold c.
func firstInstant(p Period, loc *time.Location, c time.Time, steps int) Millis {
	y, m, d := c.Date()
	switch p {
	case Week:
		d += 7*steps - int(c.Weekday()+6)%7
	case Month:
		m, d = m+time.Month(steps), 1
	case Year:
		y, m, d = y+steps, time.January, 1
	default:
		d += steps
	}
	return dayStart(loc, time.Date(y, m, d, 12, 0, 0, 0, time.UTC))
}

// dayStart is the first instant at which a clock in loc shows the date of day.
func dayStart(loc *time.Location, day time.Time) Millis {
	y, m, d := day.Date()
	at := time.Date(y, m, d, 0, 0, 0, 0, loc)
	if !sameDate(at, day) || at.Hour() != 0 { // there is no midnight: the day begins at the change
		if sameDate(at, day) {
			at, _ = at.ZoneBounds()
		} else {
			_, at = at.ZoneBounds()
		}
		return Millis(at.UnixMilli())
	}
	// Midnight may come twice: the first one counts.
	if change, _ := at.ZoneBounds(); !change.IsZero() && at.Sub(change) < 3*time.Hour {
		_, after := at.Zone()
		_, before := change.Add(-time.Second).In(loc).Zone()
		first := at.Add(-time.Duration(before-after) * time.Second)
		if before > after && first.Before(change) && sameDate(first, day) {
			at = first
		}
	}
	return Millis(at.UnixMilli())
}

func sameDate(a, b time.Time) bool {
	ay, am, ad := a.Date()
	by, bm, bd := b.Date()
	return ay == by && am == bm && ad == bd
}

const hourMillis = Millis(time.Hour / time.Millisecond)

// hourAt cuts hours by the offset in force. A zone change that is no whole hour makes the hours beside it
// shorter.
func hourAt(loc *time.Location, t Millis) (start, end Millis) {
	at := time.UnixMilli(int64(t)).In(loc)
	_, offset := at.Zone()
	into := (t + Millis(offset)*1000) % hourMillis
	if into < 0 {
		into += hourMillis
	}
	start, end = t-into, t-into+hourMillis
	from, to := at.ZoneBounds()
	if s := Millis(from.UnixMilli()); !from.IsZero() && s > start {
		start = s
	}
	if e := Millis(to.UnixMilli()); !to.IsZero() && e < end {
		end = e
	}
	return start, end
}
