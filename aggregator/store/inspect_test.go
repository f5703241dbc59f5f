package store

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"

	"github.com/weirproxy/weir/test/parts"
)

func opened(t *testing.T, addr string) *Redis {
	t.Helper()
	r, err := New(Config{Addresses: []string{addr}, Timeout: 5 * time.Second})
	must(t, err)
	t.Cleanup(r.Close)
	return r
}

func TestInspectReadsWhatAServerTells(t *testing.T) {
	m := miniredis.RunT(t)
	m.Server().SetPreHook(func(c *server.Peer, cmd string, _ ...string) bool {
		if cmd != "INFO" {
			return false
		}
		c.WriteBulk("# Server\r\nredis_version:7.0.15\r\n# Memory\r\nmaxmemory:1024\r\nmaxmemory_policy:allkeys-lru\r\n# Persistence\r\naof_enabled:1\r\nrole:master\r\n")
		return true
	})
	got, err := opened(t, m.Addr()).Inspect(t.Context())
	must(t, err)
	expect := Node{Address: m.Addr(), Version: "7.0.15", Role: "master", MaxMemory: "1024", Eviction: "allkeys-lru", AppendOnly: "1"}
	if len(got) != 1 || got[0] != expect {
		t.Errorf("%+v, want %+v", got, expect)
	}
}

func TestInspectOfAServerThatTellsLittle(t *testing.T) {
	m := miniredis.RunT(t)
	got, err := opened(t, m.Addr()).Inspect(t.Context())
	must(t, err)
	if len(got) != 1 || got[0] != (Node{Address: m.Addr()}) {
		t.Errorf("%+v", got)
	}
}

func TestProbeRunsTheScriptAndWritesNothing(t *testing.T) {
	m := miniredis.RunT(t)
	r := opened(t, m.Addr())
	for range 2 { // loaded, and by its hash
		must(t, r.Probe(t.Context()))
	}
	if keys := m.Keys(); len(keys) > 0 {
		t.Errorf("it wrote %v", keys)
	}
	m.Server().SetPreHook(func(c *server.Peer, cmd string, _ ...string) bool {
		if cmd != "EVALSHA" && cmd != "EVAL" {
			return false
		}
		c.WriteError("NOPERM this user has no permissions to run the 'evalsha' command")
		return true
	})
	if err := r.Probe(t.Context()); err == nil || !strings.Contains(err.Error(), "NOPERM") {
		t.Errorf("a refused script: %v", err)
	}
}

func TestInspectAndProbeOnARealServer(t *testing.T) {
	addr := os.Getenv("WEIR_TEST_REDIS")
	if addr == "" {
		t.Skip("WEIR_TEST_REDIS is not set")
	}
	r := opened(t, addr)
	got, err := r.Inspect(t.Context())
	must(t, err)
	if len(got) != 1 || got[0].Version == "" || got[0].Role != "master" || got[0].MaxMemory == "" || got[0].Eviction == "" || got[0].AppendOnly == "" {
		t.Errorf("%+v: something is not told", got)
	}
	must(t, r.Probe(t.Context()))
}

// Each node of a cluster is asked, and the script runs on the one that has its key. A user with an aggregator's rights may not
// ask, and is told so in a way that weir check knows.
func TestInspectAndProbeOnACluster(t *testing.T) {
	wantServers(t)
	nodes := parts.StartRedisCluster(t)
	r, err := New(Config{Addresses: []string{nodes[1].Addr()}, Cluster: true, Timeout: 5 * time.Second})
	must(t, err)
	t.Cleanup(r.Close)
	got, err := r.Inspect(t.Context())
	must(t, err)
	must(t, r.Probe(t.Context()))
	if len(got) != len(nodes) || got[0].Version == "" {
		t.Errorf("%+v, want %d nodes", got, len(nodes))
	}
	guard(t, nodes...)
	c := Config{Addresses: []string{nodes[0].Addr()}, Cluster: true, Username: "weir", PasswordFile: file(t, "s3cret\n"), Timeout: 5 * time.Second}
	limited, err := New(c)
	must(t, err)
	t.Cleanup(limited.Close)
	must(t, limited.Probe(t.Context()))
	if _, err := limited.Inspect(t.Context()); err == nil || !strings.Contains(err.Error(), "NOPERM") {
		t.Errorf("without the right to INFO: %v", err)
	}
}
