package embedded

import (
	"fmt"

	"github.com/alicebob/miniredis/v2"
)

// Redis is one server inside this process. Clients of it must use RESP2 and no client-side cache
// (rueidis: AlwaysRESP2, DisableCache, ForceSingleClient). Safe for concurrent use.
type Redis struct {
	server *miniredis.Miniredis
}

// StartRedis starts a server at addr ("127.0.0.1:6379"; "" or port 0: a free port of 127.0.0.1).
// Keys expire by the clock.
func StartRedis(addr string) (*Redis, error) {
	if addr == "" {
		addr = "127.0.0.1:0"
	}
	m := miniredis.NewMiniRedis()
	m.ClockTTL(true)
	if err := m.StartAddr(addr); err != nil {
		return nil, fmt.Errorf("embedded Redis at %s: %w", addr, err)
	}
	return &Redis{server: m}, nil
}

// Addr is the server's host:port.
func (r *Redis) Addr() string { return r.server.Addr() }

// Server is the server itself, for tests that look into it or inject faults.
func (r *Redis) Server() *miniredis.Miniredis { return r.server }

// Flush empties the server, as a restart without persistence does.
func (r *Redis) Flush() { r.server.FlushAll() }

// Close ends the server and forgets all keys. It may be called again.
func (r *Redis) Close() { r.server.Close() }
