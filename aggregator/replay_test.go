package aggregator

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/weirproxy/weir/aggregator/store"
	wirev1 "github.com/weirproxy/weir/api/wire/v1"
)

// redisDo sends one command and waits for its answer.
func (s *site) redisDo(args ...string) {
	s.t.Helper()
	conn, err := net.Dial("tcp", s.addr)
	if err != nil {
		s.t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "*%d\r\n", len(args))
	for _, a := range args {
		fmt.Fprintf(conn, "$%d\r\n%s\r\n", len(a), a)
	}
	answer := make([]byte, 64)
	if n, err := conn.Read(answer); err != nil || n == 0 || answer[0] == '-' {
		s.t.Fatalf("redis %v: %q, %v", args, answer[:n], err)
	}
}

// The brokers' clock went back since the last flush, as when another broker leads: the next owner reads what
// the store lacks all the same, and its own claim.
func TestReplayDoesNotTrustTheBrokersClock(t *testing.T) {
	s := newSite(t)
	a := s.start("a-0", nil)
	s.wait("it is live", func() bool { return a.live() == partitions })
	x := s.pod("shop/x")
	x.load(200*time.Millisecond, "acme", "bar")
	s.tallies(x)
	a.stop()
	x.load(200*time.Millisecond, "acme", "baz")
	p := wirev1.Partition(target, partitions)
	s.redisDo("HSET", store.RecordKey(p), "appended", fmt.Sprint(time.Now().Add(time.Hour).UnixMilli()))
	b := s.start("a-1", nil)
	s.wait("the next one is live", func() bool { return b.live() == partitions })
	s.tallies(x)
}

// A fenced owner claims again after a pause while the group still says that the partition is its own, and
// what was reported meanwhile counts.
func TestFencedOwnerClaimsAgain(t *testing.T) {
	s := newSite(t)
	a := s.start("a-0", nil)
	s.wait("it is live", func() bool { return a.live() == partitions })
	x := s.pod("shop/x")
	x.load(200*time.Millisecond, "acme")
	s.strangersClaim()
	s.wait("it gives the partition up", func() bool { return a.live() == partitions-1 })
	x.load(200*time.Millisecond, "acme", "bar")
	s.wait("it has claimed it again", func() bool { return a.live() == partitions })
	s.tallies(x)
	s.ordered()
}

// The log of usage has lost its end, and with it the claim that Redis knows: the aggregator says so with what
// to do, and holds the partition again once the log has grown past that claim.
func TestLogCutBack(t *testing.T) {
	s := newSite(t)
	a := s.start("a-0", nil)
	s.wait("it is live", func() bool { return a.live() == partitions })
	x := s.pod("shop/x")
	x.load(100*time.Millisecond, "acme")
	s.tallies(x)
	a.stop()
	p := wirev1.Partition(target, partitions)
	end, err := s.client.Newest(t.Context(), s.topics.Usage, p)
	if err != nil {
		t.Fatal(err)
	}
	s.redisDo("HSET", store.RecordKey(p), "epoch", fmt.Sprint(end+5))
	b := s.start("a-1", nil)
	s.wait("it says what is wrong", func() bool {
		_, reasons := b.Ready()
		said := strings.Join(reasons, "\n")
		return strings.Contains(said, "was cut back") && strings.Contains(said, store.RecordKey(p))
	})
	x.load(200*time.Millisecond, "acme")
	s.wait("it holds the partition again", func() bool { return b.live() == partitions })
	x.load(100*time.Millisecond, "acme")
	s.tallies(x)
}
