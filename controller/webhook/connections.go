package webhook

import (
	"crypto/tls"
	"net"
	"net/http"
	"sync"
)

// maxConnections is how many there are at a time. Each may hold smallReview bytes and about as much for TLS.
const maxConnections = 512

// connections bounds how many a server has: where there is one too many, the one that has brought no request for
// the longest goes, so that whoever opens many does not keep others out. It is safe for concurrent use.
type connections struct {
	limit int
	mu    sync.Mutex
	turn  uint64
	open  map[net.Conn]uint64 // since which turn it waits for a request; 0: it has one
}

func newConnections(limit int) *connections {
	return &connections{limit: limit, open: map[net.Conn]uint64{}}
}

// changed is the server's ConnState.
func (c *connections) changed(conn net.Conn, state http.ConnState) {
	if out := c.count(conn, state); out != nil {
		hangUp(out)
	}
}

// count keeps the books and returns the connection that has to go.
func (c *connections) count(conn net.Conn, state http.ConnState) net.Conn {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch state {
	case http.StateNew:
		c.waits(conn)
		if len(c.open) > c.limit {
			out := c.longest()
			delete(c.open, out)
			return out
		}
	case http.StateIdle:
		c.waits(conn)
	case http.StateActive:
		c.open[conn] = 0
	case http.StateClosed, http.StateHijacked:
		delete(c.open, conn)
	}
	return nil
}

func (c *connections) waits(conn net.Conn) {
	c.turn++
	c.open[conn] = c.turn
}

// longest is the one that waits for the longest; one at least does, the newest.
func (c *connections) longest() (out net.Conn) {
	since := c.turn
	for conn, turn := range c.open {
		if turn > 0 && turn <= since {
			out, since = conn, turn
		}
	}
	return out
}

// hangUp closes without the farewell that a TLS connection waits for.
func hangUp(conn net.Conn) {
	if t, ok := conn.(*tls.Conn); ok {
		conn = t.NetConn()
	}
	_ = conn.Close()
}
