package aggregator

import (
	"context"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirproxy/weir/aggregator/partition"
)

// proxy stands before a server; while frozen it takes connections and passes nothing on, as a stopped
// process does.
type proxy struct {
	net.Listener
	behind string
	gate   sync.Mutex // held while frozen
	all    sync.WaitGroup

	mu    sync.Mutex
	conns []net.Conn
}

func before(t *testing.T, server string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{Listener: l, behind: server}
	p.all.Go(p.accept)
	t.Cleanup(func() {
		_ = l.Close()
		p.mu.Lock()
		for _, c := range p.conns {
			_ = c.Close()
		}
		p.mu.Unlock()
		p.all.Wait()
	})
	return p
}

func (p *proxy) accept() {
	for {
		conn, err := p.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.behind)
		if err != nil {
			_ = conn.Close()
			continue
		}
		p.mu.Lock()
		p.conns = append(p.conns, conn, server)
		p.mu.Unlock()
		p.all.Go(func() { p.pass(conn, server) })
		p.all.Go(func() { p.pass(server, conn) })
	}
}

func (p *proxy) pass(to, from net.Conn) {
	defer to.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		p.gate.Lock()
		p.gate.Unlock() //nolint:staticcheck // it only waits
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}

// Case 17: SIGTERM ends within its deadline with Redis frozen since the start. stop fails the test where Run
// does not end within Grace.
func TestCase17EndsInTimeWithRedisFrozen(t *testing.T) {
	s := newSite(t)
	p := before(t, s.addr)
	p.gate.Lock()
	t.Cleanup(p.gate.Unlock)
	a := s.start("a-0", func(c *Config) {
		c.Redis.Addresses, c.Grace = []string{p.Addr().String()}, 3*time.Second // nothing is held: no handover
	})
	s.wait("it waits for the store", func() bool {
		_, reasons := a.Ready()
		return strings.Contains(strings.Join(reasons, "\n"), "waiting for the store")
	})
	a.stop()
}

// Case 17: the same with Kafka and Redis frozen under load.
func TestCase17EndsInTimeWithAllFrozen(t *testing.T) {
	s := newSite(t)
	s.inProcess()
	p := before(t, s.addr)
	a := s.start("a-0", func(c *Config) { c.Redis.Addresses = []string{p.Addr().String()} })
	s.wait("it is live", func() bool { return a.live() == partitions })
	x := s.pod("shop/x")
	x.load(200*time.Millisecond, "acme", "bar")
	p.gate.Lock()
	thaw := make(chan struct{})
	t.Cleanup(func() { close(thaw); p.gate.Unlock() })
	s.kafka.Cluster().Control(func(kmsg.Request) (kmsg.Response, error, bool) {
		<-thaw
		return nil, nil, false
	})
	a.stop()
}

// The usage topic is made anew while Redis does not answer: what was counted and not yet written is not lost.
func TestTopicMadeAnewWithRedisFrozen(t *testing.T) {
	s := newSite(t)
	s.inProcess()
	p := before(t, s.addr)
	a := s.start("a-0", func(c *Config) { c.Redis.Addresses = []string{p.Addr().String()} })
	s.wait("it is live", func() bool { return a.live() == partitions })
	x := s.pod("shop/x")
	x.load(200*time.Millisecond, "acme")
	s.tallies(x)
	p.gate.Lock()
	thaw := sync.OnceFunc(p.gate.Unlock)
	t.Cleanup(thaw)
	x.load(200*time.Millisecond, "acme")
	s.wait("it has counted all", func() bool { return a.total("acme") == x.counts["acme"] })
	if err := s.kafka.Cluster().DeleteTopic(s.topics.Usage); err != nil {
		t.Fatal(err)
	}
	if _, err := s.client.Ensure(t.Context(), s.topics, false); err != nil {
		t.Fatal(err)
	}
	says := func() bool {
		_, reasons := a.Ready()
		return strings.Contains(strings.Join(reasons, "\n"), "writing what was counted")
	}
	s.wait("it notices the new topic", says)
	time.Sleep(longestHandover + 500*time.Millisecond)
	if !says() {
		t.Error("it has given up what was counted")
	}
	thaw()
	s.wait("it is live again", func() bool { return a.live() == partitions })
	x.load(200*time.Millisecond, "acme")
	s.tallies(x)
}

// total is what the owner has counted of a client.
func (r *running) total(client string) (sum uint64) {
	c := r.core.get()
	for p := range int32(partitions) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		found, _ := c.owner.Inspect(ctx, p, partition.Query{Limit: "shop/orders", Most: 100})
		cancel()
		for _, b := range found {
			if strings.Contains(b.Client, client) {
				sum += b.Total
			}
		}
	}
	return sum
}
