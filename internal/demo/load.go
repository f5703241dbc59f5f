package demo

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

// asker sends one request to a pod and says whether it was admitted. It is safe for concurrent use.
type asker interface {
	ask(ctx context.Context) (admitted bool, err error)
}

// load is open-loop: requests leave when they are due, whatever became of earlier ones, as real
// clients' do. Each pod has a share of the rate.
type load struct {
	rate   float64 // requests/s, all pods together
	shares []float64
	pods   []asker
	tally  *tally
	// inFlight bounds the requests of a pod that are not answered yet; beyond it one is counted as
	// failed, so that the bound can be seen.
	inFlight int
	start    time.Time
}

// errBusy says that the load itself was held up.
var errBusy = fmt.Errorf("too many requests of the load are unanswered")

// requestTimeout bounds one request of the load.
const requestTimeout = 2 * time.Second

// run sends until ctx ends, then waits for what is in flight.
func (l *load) run(ctx context.Context) {
	var pods sync.WaitGroup
	for i := range l.pods {
		pods.Go(func() { l.pod(ctx, i) })
	}
	pods.Wait()
}

func (l *load) pod(ctx context.Context, pod int) {
	rate := l.rate * l.shares[pod]
	if rate <= 0 {
		return
	}
	rnd := rand.New(rand.NewPCG(uint64(pod)+1, 0x7765)) //nolint:gosec // arrivals, no secret
	slots := make(chan struct{}, l.inFlight)
	var waiting sync.WaitGroup
	defer waiting.Wait()
	timer := time.NewTimer(0)
	defer timer.Stop()
	due := time.Since(l.start)
	for {
		due += time.Duration(rnd.ExpFloat64() / rate * float64(time.Second))
		timer.Reset(due - time.Since(l.start))
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		l.tally.offer()
		select {
		case slots <- struct{}{}:
			waiting.Go(func() { l.one(pod); <-slots })
		default:
			l.tally.fail(errBusy)
		}
	}
}

// one outlives the load's context, so that a request that was sent is always counted.
func (l *load) one(pod int) {
	ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
	defer cancel()
	admitted, err := l.pods[pod].ask(ctx)
	if err != nil {
		l.tally.fail(err)
		return
	}
	l.tally.answer(event{time.Since(l.start), pod, admitted})
}

// sharesOf spreads a load unevenly: 60, 30 and 10 % over three pods, each half of the one before over
// any other number.
func sharesOf(pods int) []float64 {
	if pods == 3 {
		return []float64{0.6, 0.3, 0.1}
	}
	shares := make([]float64, pods)
	sum, part := 0.0, 1.0
	for i := range shares {
		shares[i] = part
		sum += part
		part /= 2
	}
	for i := range shares {
		shares[i] /= sum
	}
	return shares
}
