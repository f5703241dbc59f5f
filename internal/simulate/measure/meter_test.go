package measure

import (
	"testing"
	"time"

	"github.com/weirproxy/weir/internal/quota"
)

const second = time.Second

func sliding(limit float64, w time.Duration) *quota.Rule {
	return &quota.Rule{Algorithm: quota.SlidingWindow, Limit: limit, Window: w}
}

// exactly offers one unit a ms and lets the exact limiter answer for the measured one.
func exactly(m *Meter, until int64) {
	for t := range until {
		ok := m.Exact(ms(t), 1)
		a := Refused
		if ok {
			a = Admitted
		}
		m.Offer(ms(t), 0, 1, ok, a)
	}
}

func TestTheExactLimiterIsExact(t *testing.T) {
	m := NewMeter(sliding(100, second), &Options{Steady: 2 * second, End: 10 * second})
	exactly(m, 10000)
	if v := m.Result(); v.Over != 0 || v.Under != 0 || v.EnforceMillis != 0 || v.FalseDenials != 0 || v.Offered != 10000 || v.Admitted != 1000 || v.AdmittedMean != 100 {
		t.Fatalf("%+v", v)
	}
}
