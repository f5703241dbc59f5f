package partition

import (
	"time"

	"github.com/weirproxy/weir/internal/quota"
)

// schedule says which counters are decided at a tick: hot ones at each, the others at once if
// something happened that pods should hear of, else 100 or 250 ms later (a wheel of lists).
type schedule struct {
	due   []*counter
	wheel [wheelSlots][]*counter
	turn  int64 // of the wheel, up to which lists were taken
	spare []*counter
}

const (
	wheelSlots = 16
	wheelTurn  = quota.Time(25 * time.Millisecond)
	quietTurns = 4    // 100 ms
	farTurns   = 10   // 250 ms, of counters that hold less than a quarter of their amount
	farAway    = 0.75 // of M left
	urgentPart = 0.02 // of M, and a quarter of what is left: see ALGORITHM 3.3
	soonPart   = 0.01 // of M: that much new usage is decided at the next tick
)

// soon has c decided at the next tick.
func (s *schedule) soon(c *counter) {
	if !c.active {
		c.active = true
		s.due = append(s.due, c)
	}
}

// later has c decided after some turns of the wheel.
func (s *schedule) later(c *counter, turns int64) {
	if !c.active && !c.wheeled {
		c.wheeled = true
		slot := (s.turn + turns) % wheelSlots
		s.wheel[slot] = append(s.wheel[slot], c)
	}
}

// take returns the counters to decide at now. They are valid until the next take.
func (s *schedule) take(now quota.Time) []*counter {
	to := int64(now / wheelTurn)
	for turn := max(s.turn+1, to-wheelSlots+1); turn <= to; turn++ {
		slot := turn % wheelSlots
		for _, c := range s.wheel[slot] {
			c.wheeled = false
			s.soon(c)
		}
		clear(s.wheel[slot])
		s.wheel[slot] = s.wheel[slot][:0]
	}
	s.turn = max(s.turn, to)
	list := s.due
	s.due, s.spare = s.spare[:0], list
	for _, c := range list {
		c.active = false
	}
	return list
}
