package report

import (
	"testing"
	"time"

	"github.com/weirproxy/weir/internal/quota"
	"github.com/weirproxy/weir/sidecar/ledger"
)

// heard gathers what a pod's builder tells.
func heard(p *pod) *[]Times {
	told := new([]Times)
	p.b.config.Included = func(t Times) { *told = append(*told, t) }
	return told
}

func (p *pod) reach(watermark int64) { p.b.Included(1, watermark, func(*ledger.Slot) {}) }

func wantTold(t *testing.T, got []Times, want ...Times) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("told %v, want %v", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("told %v, want %v", got[i], want[i])
		}
	}
}

func TestAReportsTimesAreToldOnceItIsIncluded(t *testing.T) {
	p := newPod(0)
	told := heard(p)
	began := p.now
	p.spend(1, 1)
	p.now += 20 * ms
	p.spend(3, 1)
	p.now += 10 * ms
	p.spend(1, 1)
	p.now += 20 * ms
	r := p.flush(1, true)
	p.now += 8 * ms
	p.b.Acknowledged(r, 7, 0, p.now)
	p.reach(6)
	wantTold(t, *told)
	p.reach(7)
	p.reach(8)
	wantTold(t, *told, Times{Oldest: began, Newest: began + 30*ms, HandedOver: began + 50*ms})
}

// A decision that was in force before the acknowledgement came counts a report as included from then on.
func TestAHeaderBeforeTheAcknowledgementIncludesAtTheAcknowledgement(t *testing.T) {
	p := newPod(0)
	told := heard(p)
	p.spend(1, 1)
	at := p.now
	r := p.flush(1, true)
	p.now += 40 * ms
	p.reach(7)
	wantTold(t, *told)
	p.b.Acknowledged(r, 7, 0, p.now)
	want := Times{Oldest: at, Newest: at, HandedOver: at}
	wantTold(t, *told, want)
	p.reach(9)
	wantTold(t, *told, want)
	p.b.SetLogID([]byte("another")) // whose offsets begin anew
	p.spend(1, 1)
	p.b.Acknowledged(p.flush(1, true), 3, 0, p.now)
	wantTold(t, *told, want)
}

// What a lost report carried is as old as it is; and what carries no new unit has no age.
func TestALostReportsUnitsKeepTheirAge(t *testing.T) {
	p := newPod(0)
	told := heard(p)
	began := p.now
	p.spend(1, 1)
	p.b.Failed(p.flush(1, true))
	p.now += 500 * ms
	p.spend(1, 1)
	p.b.Acknowledged(p.flush(1, true), 1, 0, p.now)
	p.reach(1)
	first := Times{Oldest: began, Newest: began + 500*ms, HandedOver: began + 500*ms}
	wantTold(t, *told, first)
	p.now += 50 * ms
	p.b.Want(p.slot(1))
	p.b.Acknowledged(p.flush(1, true), 2, 0, p.now)
	p.reach(2)
	wantTold(t, *told, first, Times{HandedOver: began + 550*ms})
}

// While nothing is included, only so much is kept; what two reports become is told as old as the older.
func TestTimesThatAwaitAWatermarkAreBounded(t *testing.T) {
	p := newPod(0)
	told := heard(p)
	began := p.now
	for i := range int64(2 * maxAwaiting) {
		p.spend(1, 1)
		p.b.Acknowledged(p.flush(1, true), i, 0, p.now)
		p.now += 50 * ms
	}
	p.reach(1 << 40)
	if len(*told) != maxAwaiting || (*told)[0].Oldest != began {
		t.Fatalf("told of %d reports, the oldest %v after the first", len(*told), time.Duration((*told)[0].Oldest-began))
	}
	if last := (*told)[maxAwaiting-1].Newest; last != began+quota.Time(2*maxAwaiting-1)*50*ms {
		t.Errorf("the newest is %v after the first", time.Duration(last-began))
	}
}
