//go:build !race

package simulate

import (
	"context"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/weirproxy/weir/internal/simulate/scenario"
)

// The line that ALGORITHM 5 gives operators: over <= min(x*De/W, n*max(beta, b/M) + 1) + sqrt(x*H*M/W)/M from a first front of
// x times the limit. It is a model and no proof: that most runs keep to it is all that is held.
func TestMostRunsKeepToTheOperationalLine(t *testing.T) {
	n, pods := 24, 60
	if longBound() {
		n, pods = 120, math.MaxInt
	}
	var l lineTable
	for _, s := range scenario.Random(boundSeed, n) {
		if s.Pods > pods {
			continue
		}
		r, err := Run(context.Background(), s, s.Seed)
		if err != nil {
			t.Fatal(err)
		}
		l.add(s, r.Rates[0].Over/100)
	}
	t.Log(&l)
	if held := l.held(l.late); 10*held < 7*len(l.late) {
		t.Errorf("%d of %d runs", held, len(l.late))
	}
}

// lineTable holds the line against runs.
type lineTable struct {
	usual, late []float64 // over / line, by the mean and by the longest way of a message without its tail
	beyond      []float64 // over - line, by the longest way
}

const (
	lineBeta    = 0.25
	lineBurst   = 4.0
	lineHorizon = 0.12                  // H, s
	lineFixed   = 15 * time.Millisecond // of De: the urgent gap, and the tick
)

func (l *lineTable) add(s *scenario.Scenario, over float64) {
	front := 0.0 // x
	for _, step := range s.Traffic[0].Rate {
		front = max(front, step.Value)
	}
	rate := s.Policy.Limits[0].Rates[0]
	window, limit := rate.Window.Seconds(), float64(rate.Limit)
	front *= window / limit
	up, down := s.Network.Uplink, s.Network.Downlink
	line := func(way time.Duration) float64 {
		return min(front*(lineFixed+way).Seconds()/window, float64(s.Pods)*max(lineBeta, lineBurst/limit)+1) +
			math.Sqrt(front*lineHorizon*limit/window)/limit
	}
	late := line(up.Max + down.Max)
	l.usual = append(l.usual, over/line((up.Min+up.Max+down.Min+down.Max)/2))
	l.late = append(l.late, over/late)
	l.beyond = append(l.beyond, over-late)
}

func (l *lineTable) held(x []float64) (n int) {
	for _, v := range x {
		if v <= 1 {
			n++
		}
	}
	return n
}

func (l *lineTable) String() string {
	text := fmt.Sprintf("%d runs", len(l.usual))
	for _, by := range []struct {
		name string
		x    []float64
	}{{"mean", l.usual}, {"longest", l.late}} {
		text += fmt.Sprintf("; by the %s way held in %d, over/line median %.2f p90 %.2f most %.2f", by.name, l.held(by.x),
			quantile(by.x, 0.5), quantile(by.x, 0.9), quantile(by.x, 1))
	}
	return text + fmt.Sprintf("; beyond the longest way's by %.1f %% of the limit at most, p90 %.1f %%",
		100*max(quantile(l.beyond, 1), 0), 100*max(quantile(l.beyond, 0.9), 0))
}
