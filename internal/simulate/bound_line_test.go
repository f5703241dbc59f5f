//go:build !race

package simulate

import (
	"fmt"
	"math"
	"time"

	"github.com/weirproxy/weir/internal/simulate/scenario"
)

// lineTable holds the operational line of ALGORITHM 5 against runs: over <= min(x*De/W, n*max(beta, b/M) + 1) +
// sqrt(x*H*M/W)/M from a first front of x times the limit. It is a model, so that nothing fails by it.
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

func (l *lineTable) add(s *scenario.Scenario, b *bound) {
	front := 0.0 // x
	for _, step := range s.Traffic[0].Rate {
		front = max(front, step.Value)
	}
	front *= float64(b.window) / 1000 / b.limit
	up, down := s.Network.Uplink, s.Network.Downlink
	over := b.most/b.limit - 1
	line := func(way time.Duration) float64 {
		window := float64(b.window) / 1000
		return min(front*(lineFixed+way).Seconds()/window, float64(s.Pods)*max(lineBeta, lineBurst/b.limit)+1) +
			math.Sqrt(front*lineHorizon*b.limit/window)/b.limit
	}
	late := line(up.Max + down.Max)
	l.usual = append(l.usual, over/line((up.Min+up.Max+down.Min+down.Max)/2))
	l.late = append(l.late, over/late)
	l.beyond = append(l.beyond, over-late)
}

func (l *lineTable) String() string {
	held := func(x []float64) (n int) {
		for _, v := range x {
			if v <= 1 {
				n++
			}
		}
		return n
	}
	return fmt.Sprintf("%d runs; by the mean way held in %d, over/line median %.2f p90 %.2f most %.2f; by the longest in %d, %.2f %.2f %.2f, "+
		"beyond it by %.1f %% of the limit at most", len(l.usual), held(l.usual), quantile(l.usual, 0.5), quantile(l.usual, 0.9), quantile(l.usual, 1),
		held(l.late), quantile(l.late, 0.5), quantile(l.late, 0.9), quantile(l.late, 1), 100*max(quantile(l.beyond, 1), 0))
}
