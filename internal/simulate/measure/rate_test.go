package measure

import (
	"slices"
	"testing"
	"time"

	"github.com/weirproxy/weir/internal/quota"
)

func TestCountersOfARateTogether(t *testing.T) {
	r := NewRateMeter("each-client", "10/1s", &Options{End: 10 * second})
	limit := sliding(10, second)
	a, b := r.Counter(1, limit), r.Counter(2, limit)
	admit(a, 0, 5)
	admit(b, 0, 12)
	admit(b, 9, 1)
	refuse(b, 10, 1)
	if r.Counter(1, limit) != a {
		t.Error("a counter was made twice")
	}
	got := r.Result()
	if got.Limit != "each-client" || got.Title != "10/1s" || got.Counters != 2 {
		t.Errorf("got %+v", got)
	}
	wantValue(t, "over", got.Over, 30) // the worst
	wantValue(t, "enforce", got.EnforceMillis, 10)
	wantValue(t, "mean", got.AdmittedMean, 1.8)
	wantValue(t, "under", got.Under, 100*(1-18./15))
	wantValue(t, "offered", got.Offered, 19)
}

func TestSeries(t *testing.T) {
	r := NewRateMeter("l", "r", &Options{End: 4 * second, Bins: 4})
	m := r.Counter(1, sliding(10, 2*second))
	admit(m, 1500, 10)
	refuse(m, 1600, 2)
	m.SetRule(ms(2500), sliding(20, 2*second))
	s := r.Result().Series
	for _, c := range []struct {
		name      string
		got, want []float64
	}{
		{"limit", s.Limit, []float64{5, 5, 7.5, 10}},
		{"offered", s.Offered, []float64{0, 12, 0, 0}},
		{"admitted", s.Admitted, []float64{0, 10, 0, 0}},
		{"exact", s.Exact, []float64{0, 10, 0, 0}},
		{"window", s.Window, []float64{0, 1, 1, 0.5}},
	} {
		if !slices.Equal(c.got, c.want) {
			t.Errorf("%s is %v, want %v", c.name, c.got, c.want)
		}
	}
	if s.Bin != second {
		t.Errorf("bins of %v", s.Bin)
	}
}

func TestBinsAreWholeMillisecondsAndTheLastIsAsLongAsTheRun(t *testing.T) {
	r := NewRateMeter("l", "r", &Options{End: 2500 * time.Millisecond, Bins: 3})
	admit(r.Counter(1, sliding(10, second)), 2499, 3)
	s := r.Result().Series
	if s.Bin != 834*time.Millisecond || len(s.Limit) != 3 {
		t.Fatalf("%d bins of %v", len(s.Limit), s.Bin)
	}
	wantValue(t, "admitted", s.Admitted[2], 3/0.832)
}

func TestTheLimitOfManyCountersIsThatOfThoseSeen(t *testing.T) {
	r := NewRateMeter("l", "r", &Options{End: 4 * second, Bins: 4})
	hour := &quota.Rule{Algorithm: quota.Calendar, Limit: 3600, Period: quota.Hour}
	for i := range uint64(3) {
		admit(r.Counter(i, hour), 1000*int64(i), 1)
	}
	r.Counter(9, hour) // nothing was asked of it
	if s := r.Result().Series; !slices.Equal(s.Limit, []float64{1, 2, 3, 3}) {
		t.Errorf("limit is %v", s.Limit)
	}
}

func TestEachCounterCanBeGivenAnotherLimit(t *testing.T) {
	r := NewRateMeter("l", "r", &Options{End: 4 * second})
	admit(r.Counter(1, sliding(10, second)), 0, 10)
	admit(r.Counter(2, sliding(10, second)), 0, 10)
	seen := uint64(0)
	r.Each(func(key uint64, m *Meter) {
		seen += key
		m.SetRule(ms(100), sliding(20, second))
	})
	admit(r.Counter(1, sliding(20, second)), 200, 10)
	if seen != 3 {
		t.Errorf("keys add up to %d", seen)
	}
	wantValue(t, "over", r.Result().Over, 0)
}
