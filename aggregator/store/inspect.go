package store

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/redis/rueidis"
)

// Node is what one server says of itself (INFO). A value that it does not tell is "".
type Node struct {
	// Address is host:port as the client reaches it.
	Address string
	// Version is Redis's, or the one that a compatible server claims: 7.0.15.
	Version string
	// Role is master or slave.
	Role string
	// MaxMemory is its bound of memory in bytes, "0" for none; Eviction is what it does at the bound: maxmemory-policy.
	MaxMemory, Eviction string
	// AppendOnly is "1" where each write goes to a file (AOF).
	AppendOnly string
}

// Inspect asks each server for what it says of itself, sorted by address. It changes nothing.
func (r *Redis) Inspect(ctx context.Context) ([]Node, error) {
	var out []Node
	err := r.do(ctx, "info", func(ctx context.Context, c rueidis.Client) error {
		out = out[:0]
		nodes := c.Nodes()
		for _, addr := range slices.Sorted(maps.Keys(nodes)) {
			text, err := nodes[addr].Do(ctx, nodes[addr].B().Info().Build()).ToString()
			if err != nil {
				return fmt.Errorf("%s: %w", addr, err)
			}
			out = append(out, parseInfo(addr, text))
		}
		return nil
	})
	return out, err
}

// parseInfo reads lines of name:value.
func parseInfo(addr, text string) Node {
	n := Node{Address: addr}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		switch name {
		case "redis_version":
			n.Version = value
		case "role":
			n.Role = value
		case "maxmemory":
			n.MaxMemory = value
		case "maxmemory_policy":
			n.Eviction = value
		case "aof_enabled":
			n.AppendOnly = value
		}
	}
	return n
}

// probeKey is in the key space that weir's user may touch, and belongs to no partition.
const probeKey = "{weir:check}:partition"

// Probe runs the script of a flush as an owner does, so that it ends before its first write.
func (r *Redis) Probe(ctx context.Context) error {
	var c chunk
	c.begin(&Flush{Known: 1}, true, true)
	c.keys.reset()
	c.keys.text(probeKey)
	err := r.send(ctx, &Flush{}, &c)
	if errors.Is(err, ErrLost) { // the answer to a flush that knows of one before it
		return nil
	}
	if err == nil {
		err = fmt.Errorf("redis: the script wrote %s, which it must not; is the server a Redis?", probeKey)
	}
	return err
}
