package measure

import (
	"math"
	"testing"
	"time"

	"github.com/weirproxy/weir/internal/quota"
)

const second = time.Second

func sliding(limit float64, w time.Duration) *quota.Rule {
	return &quota.Rule{Algorithm: quota.SlidingWindow, Limit: limit, Window: w}
}

func bucket10(burst float64) *quota.Rule {
	return &quota.Rule{Algorithm: quota.TokenBucket, Limit: 10, Window: second, Burst: burst}
}

// admit admits n single units at a time, ms, of which the exact limiter admits what it would.
func admit(m *Meter, at int64, n int) {
	for range n {
		m.Offer(ms(at), 0, 1, m.Exact(ms(at), 1), Admitted)
	}
}

func refuse(m *Meter, at int64, n int) {
	for range n {
		m.Offer(ms(at), 0, 1, m.Exact(ms(at), 1), Refused)
	}
}

func wantValue(t *testing.T, what string, got, want float64) {
	t.Helper()
	if !(math.Abs(got-want) < 1e-9) && !(math.IsNaN(got) && math.IsNaN(want)) {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}

func TestTheExactLimiterIsExact(t *testing.T) {
	m := NewMeter(sliding(100, second), &Options{Steady: 2 * second, End: 10 * second})
	for at := range int64(10_000) {
		a, ok := Refused, m.Exact(ms(at), 1)
		if ok {
			a = Admitted
		}
		m.Offer(ms(at), 0, 1, ok, a)
	}
	v := m.Result()
	for what, c := range map[string][2]float64{
		"over": {v.Over, 0}, "under": {v.Under, 0}, "outage over": {v.OutageOver, math.NaN()}, "outage under": {v.OutageUnder, math.NaN()},
		"enforce": {v.EnforceMillis, 0}, "false denials": {v.FalseDenials, 0}, "Jain's index": {v.Jain, 1},
		"offered": {v.Offered, 10_000}, "admitted": {v.Admitted, 1000}, "mean": {v.AdmittedMean, 100}, "exact mean": {v.ExactMean, 100},
	} {
		wantValue(t, what, c[0], c[1])
	}
}

func TestOver(t *testing.T) {
	for name, c := range map[string]struct {
		rule *quota.Rule
		do   func(*Meter)
		want float64
	}{
		"both in one window":            {sliding(10, second), func(m *Meter) { admit(m, 900, 8); admit(m, 1500, 6) }, 40},
		"in two windows":                {sliding(10, second), func(m *Meter) { admit(m, 400, 8); admit(m, 1500, 6) }, -20},
		"the last ms that counts":       {sliding(10, second), func(m *Meter) { admit(m, 0, 8); admit(m, 999, 6) }, 40},
		"the first that does not":       {sliding(10, second), func(m *Meter) { admit(m, 0, 8); admit(m, 1000, 6) }, -20},
		"nothing admitted":              {sliding(10, second), func(m *Meter) { refuse(m, 0, 1) }, -100},
		"nothing offered":               {sliding(10, second), func(*Meter) {}, math.NaN()},
		"lowered below the content":     {sliding(10, second), func(m *Meter) { admit(m, 0, 8); m.SetRule(ms(100), sliding(5, second)) }, -20},
		"admitted on top of that":       {sliding(10, second), func(m *Meter) { admit(m, 0, 8); m.SetRule(ms(100), sliding(5, second)); admit(m, 200, 1) }, 20},
		"once that has expired":         {sliding(10, second), func(m *Meter) { admit(m, 0, 8); m.SetRule(ms(100), sliding(5, second)); admit(m, 1000, 5) }, 0},
		"raised":                        {sliding(10, second), func(m *Meter) { admit(m, 0, 10); m.SetRule(ms(100), sliding(20, second)); admit(m, 200, 11) }, 5},
		"over before it was raised":     {sliding(10, second), func(m *Meter) { admit(m, 0, 12); m.SetRule(ms(100), sliding(20, second)) }, 20},
		"bucket: at once":               {bucket10(10), func(m *Meter) { admit(m, 0, 12) }, 20},
		"bucket: half a second's worth": {bucket10(10), func(m *Meter) { admit(m, 0, 10); admit(m, 500, 5) }, 0},
		"bucket: more than that":        {bucket10(10), func(m *Meter) { admit(m, 0, 10); admit(m, 500, 7) }, 20},
		"bucket: never below empty":     {bucket10(10), func(m *Meter) { admit(m, 0, 1); admit(m, 9000, 11) }, 10},
		"bucket: lowered":               {bucket10(10), func(m *Meter) { admit(m, 0, 10); m.SetRule(0, bucket10(4)); admit(m, 500, 1) }, 25},
	} {
		t.Run(name, func(t *testing.T) {
			m := NewMeter(c.rule, &Options{End: 10 * second})
			c.do(m)
			wantValue(t, "over", m.Result().Over, c.want)
		})
	}
}

func TestACalendarPeriodBeginsAnew(t *testing.T) {
	hour := &quota.Rule{Algorithm: quota.Calendar, Limit: 10, Period: quota.Hour}
	m := NewMeter(hour, &Options{Start: 3_600_000 - 1000, Steady: 500 * time.Millisecond, End: 2 * second})
	admit(m, 0, 8)
	admit(m, 999, 3)
	if m.Exact(ms(999), 1) || !m.Exact(ms(1000), 10) {
		t.Error("the exact limiter keeps another period")
	}
	admit(m, 1000, 10)
	v := m.Result()
	wantValue(t, "over", v.Over, 10)
	// 8 units last from 0.5 s to 1 s, 3 for 1 ms, 10 for 1 s, of 1.5 s; the exact limiter has 2 of the 3.
	wantValue(t, "mean content", v.AdmittedMean, (8*0.5+3*0.001+10)/1.5)
	wantValue(t, "exact mean", v.ExactMean, (8*0.5+2*0.001+10)/1.5)
}

func TestUnderCountsWindowsOfTheSteadyPart(t *testing.T) {
	m := NewMeter(sliding(10, second), &Options{Steady: second, End: 3 * second})
	admit(m, 500, 4) // 0.5 s of these
	refuse(m, 500, 4)
	admit(m, 2500, 2) // 0.5 s of these
	v := m.Result()
	wantValue(t, "mean", v.AdmittedMean, (4*0.5+2*0.5)/2)
	wantValue(t, "exact mean", v.ExactMean, (8*0.5+2*0.5)/2)
	wantValue(t, "under", v.Under, 40)
}

func TestUnderOfABucketCountsItsRatesWindows(t *testing.T) {
	m := NewMeter(bucket10(5), &Options{Steady: 0, End: 2 * second})
	admit(m, 0, 5)
	v := m.Result()
	wantValue(t, "mean", v.AdmittedMean, 2.5)
	wantValue(t, "under", v.Under, 0)
}

func TestEnforcement(t *testing.T) {
	fill := func(m *Meter) {
		for at := range int64(10) {
			admit(m, at, 1)
		}
	}
	for name, c := range map[string]struct {
		do   func(*Meter)
		want float64
	}{
		"at once":                    {fill, 0},
		"never full":                 {func(m *Meter) { admit(m, 0, 9) }, 0},
		"the last one at 40 ms":      {func(m *Meter) { fill(m); admit(m, 20, 1); admit(m, 30, 1); admit(m, 40, 1) }, 41 - 9},
		"a gap of 50 ms is enough":   {func(m *Meter) { fill(m); admit(m, 20, 1); admit(m, 71, 1) }, 21 - 9},
		"one of 49 ms is not":        {func(m *Meter) { fill(m); admit(m, 20, 1); admit(m, 70, 1) }, 71 - 9},
		"with what fills it":         {func(m *Meter) { fill(m); admit(m, 9, 1) }, 1},
		"only the first time":        {func(m *Meter) { fill(m); admit(m, 2000, 10); admit(m, 2010, 1) }, 0},
		"at the end of the run":      {func(m *Meter) { admit(m, 2990, 10); admit(m, 2999, 1) }, 10},
		"by a limit that was raised": {func(m *Meter) { fill(m); admit(m, 20, 1); m.SetRule(ms(21), sliding(40, second)) }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			m := NewMeter(sliding(10, second), &Options{End: 3 * second})
			c.do(m)
			wantValue(t, "enforce", m.Result().EnforceMillis, c.want)
		})
	}
}

func TestFalseDenials(t *testing.T) {
	m := NewMeter(sliding(100, second), &Options{End: 3 * second})
	admit(m, 0, 97)
	refuse(m, 1, 2) // 97 of 100: there was room
	admit(m, 2, 1)
	refuse(m, 3, 5) // 98: as good as full
	wantValue(t, "false denials", m.Result().FalseDenials, 100*2./105)
}

func TestARequestThatDoesNotFitIsNotDeniedFalsely(t *testing.T) {
	m := NewMeter(sliding(100, second), &Options{End: 3 * second})
	admit(m, 0, 60)
	m.Offer(0, 0, 50, false, Refused)
	m.Offer(0, 0, 40, false, Refused)
	wantValue(t, "false denials", m.Result().FalseDenials, 100*40./150)
}

func TestWhatAnotherRateRefusedIsNoDemand(t *testing.T) {
	m := NewMeter(sliding(10, second), &Options{End: 2 * second})
	admit(m, 0, 1)
	m.Offer(0, 1, 1, true, RefusedElsewhere)
	v := m.Result()
	wantValue(t, "offered", v.Offered, 1)
	wantValue(t, "false denials", v.FalseDenials, 0)
	wantValue(t, "Jain's index", v.Jain, 1)
	wantValue(t, "under", v.Under, 50) // the exact limiter admitted it
}

func TestJain(t *testing.T) {
	m := NewMeter(sliding(10, second), &Options{End: 2 * second})
	for pod, admitted := range map[int]int{0: 4, 2: 2} { // of 4 each; pod 1 had nothing
		for i := range 4 {
			a := Admitted
			if i >= admitted {
				a = Refused
			}
			m.Offer(0, pod, 1, true, a)
		}
	}
	wantValue(t, "Jain's index", m.Result().Jain, 1.5*1.5/(2*(1+0.25)))
}

func TestOutages(t *testing.T) {
	m := NewMeter(sliding(10, second), &Options{End: 10 * second, Outages: []Span{{ms(2300), ms(4000)}, {ms(6000), ms(7000)}}})
	admit(m, 1000, 15) // not within
	admit(m, 2000, 9)  // still there as the outage begins
	refuse(m, 2400, 4)
	admit(m, 2400, 2)  // 11
	admit(m, 4000, 13) // no longer within
	v := m.Result()
	wantValue(t, "over", v.Over, 50)
	wantValue(t, "outage over", v.OutageOver, 10)
	// The exact limiter had admitted 9, and then the first of these 6.
	wantValue(t, "outage under", v.OutageUnder, -100)
}

func TestAnOutageBeginsWithWhatTheWindowHolds(t *testing.T) {
	m := NewMeter(sliding(10, second), &Options{End: 10 * second, Outages: []Span{{ms(2300), ms(4000)}}})
	admit(m, 1200, 5) // gone by then
	admit(m, 2000, 8)
	v := m.Result()
	wantValue(t, "outage over", v.OutageOver, -20)
	wantValue(t, "outage under", v.OutageUnder, math.NaN())
}

// Over is judged when something is admitted, and as an outage begins: a limit lowered meanwhile admits nothing.
func TestALimitLoweredInAnOutageIsNotOver(t *testing.T) {
	m := NewMeter(sliding(10, second), &Options{End: 10 * second, Bins: 1000, Outages: []Span{{ms(2300), ms(4000)}}})
	admit(m, 2000, 8)
	m.SetRule(ms(2500), sliding(5, second))
	refuse(m, 2600, 1)
	wantValue(t, "outage over", m.Result().OutageOver, -20)
}

func TestTimeThatGoesBackAndOddOptionsDoNoHarm(t *testing.T) {
	for _, o := range []*Options{{}, {End: -1}, {Steady: 3 * second, End: second, Bins: math.MaxInt}, {End: second, Outages: []Span{{second, 0}, {-second, second}}}} {
		for _, r := range []*quota.Rule{{}, sliding(0, 0), sliding(1, math.MaxInt64), bucket10(0), {Algorithm: quota.TokenBucket}, {Algorithm: quota.Calendar}, {Algorithm: 9, Limit: -1}} {
			m := NewMeter(r, o)
			for _, at := range []time.Duration{5 * second, second, -second, math.MaxInt64, 0} {
				m.Offer(at, -1, math.MaxUint64, m.Exact(at, 1), Admitted)
				m.SetRule(at, r)
				m.Offer(at, math.MaxInt, 0, false, Answer(77))
			}
			m.Result()
		}
	}
}
