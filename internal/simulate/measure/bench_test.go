package measure

import (
	"runtime"
	"testing"
	"time"

	"github.com/weirproxy/weir/internal/quota"
)

func rules() map[string]*quota.Rule {
	return map[string]*quota.Rule{
		"SlidingWindow": sliding(1000, second),
		"TokenBucket":   {Algorithm: quota.TokenBucket, Limit: 1000, Window: second, Burst: 200},
		"Calendar":      {Algorithm: quota.Calendar, Limit: 100_000, Period: quota.Hour},
	}
}

// requests offers n requests, 3 a ms, to a limiter that admits a third.
func requests(m *Meter, from time.Duration, n int) time.Duration {
	at := from
	for i := range n {
		at = from + time.Duration(i)*333*time.Microsecond
		a := Refused
		if i%3 == 0 {
			a = Admitted
		}
		m.Offer(at, i%10, 1, m.Exact(at, 1), a)
	}
	return at
}

// BenchmarkRequest is one request of one counter: the exact limiter asked, the request counted. 40 to 65 ns on
// a busy machine.
func BenchmarkRequest(b *testing.B) {
	for name, r := range rules() {
		b.Run(name, func(b *testing.B) {
			m := NewMeter(r, &Options{End: time.Duration(b.N+1) * 333 * time.Microsecond})
			b.ReportAllocs()
			b.ResetTimer()
			requests(m, 0, b.N)
		})
	}
}

func TestNoAllocationARequest(t *testing.T) {
	for name, r := range rules() {
		m := NewMeter(r, &Options{End: time.Hour})
		at := requests(m, 0, 6000) // windows, and the pods', have their size
		if n := testing.AllocsPerRun(5, func() { at = requests(m, at, 6000) }); n != 0 {
			t.Errorf("%s: %v allocations in 6000 requests", name, n)
		}
	}
}

// A run may have thousands of counters that see little.
func TestACounterOfFewRequestsIsSmall(t *testing.T) {
	const counters = 10_000
	r := NewRateMeter("each-client", "100/1h", &Options{End: time.Hour})
	rule := sliding(100, time.Hour)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for i := range uint64(counters) * 4 {
		at := time.Duration(i) * 50 * time.Millisecond
		m := r.Counter(i%counters, rule)
		m.Offer(at, 0, 1, m.Exact(at, 1), Admitted)
	}
	runtime.ReadMemStats(&after)
	if size := (after.TotalAlloc - before.TotalAlloc) / counters; size > 600 {
		t.Errorf("%d B a counter", size)
	}
}

func TestALongWindowTakesWhatIsInIt(t *testing.T) {
	m := NewMeter(sliding(1e6, time.Hour), &Options{End: 2 * time.Hour})
	for i := range 100_000 {
		m.Offer(time.Duration(i)*time.Microsecond, 0, 1, true, Admitted)
	}
	if w := m.content.(*window); len(w.slots) > 128 {
		t.Errorf("%d slots for 100 ms", len(w.slots))
	}
}
