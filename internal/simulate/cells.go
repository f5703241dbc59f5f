package simulate

import (
	"sync"

	"github.com/weirproxy/weir/internal/quota"
)

// cells lends memory for counters to one run after another: a run's ledgers never give theirs back.
type cells struct {
	lent [][]quota.Cell
	pool *cellPool
}

// cellPool is what ended runs left. It is safe for concurrent use.
type cellPool struct {
	mu   sync.Mutex
	free map[int][][]quota.Cell
}

func newCellPool() *cellPool { return &cellPool{free: map[int][][]quota.Cell{}} }

func (p *cellPool) lend() *cells { return &cells{pool: p} }

func (c *cells) take(n int) []quota.Cell {
	c.pool.mu.Lock()
	defer c.pool.mu.Unlock()
	var s []quota.Cell
	if free := c.pool.free[n]; len(free) > 0 {
		s = free[len(free)-1]
		c.pool.free[n] = free[:len(free)-1]
	} else {
		s = make([]quota.Cell, n)
	}
	c.lent = append(c.lent, s)
	return s
}

// giveBack ends the run's use of all it took.
func (c *cells) giveBack() {
	c.pool.mu.Lock()
	defer c.pool.mu.Unlock()
	for _, s := range c.lent {
		c.pool.free[len(s)] = append(c.pool.free[len(s)], s)
	}
	c.lent = nil
}
