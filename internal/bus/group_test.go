package bus

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// floor is who holds what over all members of a test's group, and every start and stop.
type floor struct {
	mu    sync.Mutex
	holds map[int32]string
	tape  tape
	twice []string
}

func newFloor() *floor { return &floor{holds: map[int32]string{}} }

// own returns a member's own: it notes what it holds until its context ends.
func (f *floor) own(who string) func(context.Context, int32) error {
	return func(ctx context.Context, p int32) error {
		f.mu.Lock()
		if other := f.holds[p]; other != "" {
			f.twice = append(f.twice, fmt.Sprintf("%d by %s and %s", p, other, who))
		}
		f.holds[p] = who
		f.mu.Unlock()
		f.tape.add("%s+%d", who, p)
		<-ctx.Done()
		f.tape.add("%s-%d", who, p)
		f.mu.Lock()
		delete(f.holds, p)
		f.mu.Unlock()
		return nil
	}
}

// shares is how many partitions each member holds, such as "a:4 b:4".
func (f *floor) shares() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := map[string]int{}
	for _, who := range f.holds {
		n[who]++
	}
	var out []string
	for _, who := range slices.Sorted(maps.Keys(n)) {
		out = append(out, fmt.Sprintf("%s:%d", who, n[who]))
	}
	return strings.Join(out, " ")
}

func (f *floor) wait(t *testing.T, shares string) {
	t.Helper()
	eventually(t, "shares are "+shares, func() bool { return f.shares() == shares })
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.twice) > 0 {
		t.Fatalf("held twice at a time: %v", f.twice)
	}
}

func join(t *testing.T, c *Client, f *floor, group, topic, who string, leave bool) (stop func()) {
	t.Helper()
	// so long a session that its end helps no test
	g := NewGroup(c, GroupConfig{Group: group, Topic: topic, Instance: who, Leave: leave, Heartbeat: 20 * time.Millisecond,
		Session: 5 * time.Minute})
	return run(t, func(ctx context.Context) error { return g.Run(ctx, f.own(who)) })
}

func TestGroupSharesPartitionsAndMovesOnlyWhatMust(t *testing.T) {
	onEach(t, func(t *testing.T, c *Client) {
		top, group, f := topic(t, c, 8), name(t, "group"), newFloor()
		join(t, c, f, group, top, "a", true)
		f.wait(t, "a:8")
		stopB := join(t, c, f, group, top, "b", true)
		f.wait(t, "a:4 b:4")
		if n := strings.Count(f.tape.String(), "a-"); n != 4 {
			t.Errorf("a let go %d partitions to give 4: %s", n, &f.tape)
		}
		stopB()
		f.wait(t, "a:8")
		if n := strings.Count(f.tape.String(), "a+"); n != 12 {
			t.Errorf("a took %d times, want 8 and 4 more: %s", n, &f.tape)
		}
	})
}

// With Leave off, a member that returns within its session finds its partitions as they were.
func TestGroupStayKeepsPartitionsForAQuickRestart(t *testing.T) {
	onEach(t, func(t *testing.T, c *Client) {
		top, group, f := topic(t, c, 6), name(t, "group"), newFloor()
		join(t, c, f, group, top, "a", true)
		stopB := join(t, c, f, group, top, "b", false)
		f.wait(t, "a:3 b:3")
		stopB()
		f.wait(t, "a:3")
		join(t, c, f, group, top, "b", true)
		f.wait(t, "a:3 b:3")
		if n := strings.Count(f.tape.String(), "a-"); n > 3 { // those it gave b at first
			t.Errorf("a let go %d partitions: %s", n, &f.tape)
		}
	})
}

func TestGroupKeepsItsPartitionsThroughALostConnection(t *testing.T) {
	k, c := fake(t)
	top, group, f := topic(t, c, 4), name(t, "group"), newFloor()
	join(t, c, f, group, top, "a", true)
	f.wait(t, "a:4")
	for range 3 {
		cut(k, int16(kmsg.Heartbeat))
		h := k.Cluster().Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Heartbeat}, Observe: true, Count: 3})
		eventually(t, "heartbeats go on", func() bool { return h.Hits() >= 3 })
	}
	if strings.Contains(f.tape.String(), "a-") {
		t.Fatalf("it let go: %s", &f.tape)
	}
}

func TestGroupLetsGoWhatTheCoordinatorNoLongerGrants(t *testing.T) {
	for _, e := range []*kerr.Error{kerr.UnknownMemberID, kerr.IllegalGeneration} {
		t.Run(e.Message, func(t *testing.T) {
			k, c := fake(t)
			top, group, f := topic(t, c, 2), name(t, "group"), newFloor()
			join(t, c, f, group, top, "a", true)
			f.wait(t, "a:2")
			k.Cluster().Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Heartbeat}, Group: group, TopLevel: true, Err: e})
			eventually(t, "it has let go", func() bool { return strings.Count(f.tape.String(), "a-") == 2 })
			f.wait(t, "a:2")
		})
	}
}

func TestGroupLetsGoWhenASessionPassesInSilence(t *testing.T) {
	k, c := fake(t)
	top, group, f := topic(t, c, 2), name(t, "group"), newFloor()
	g := NewGroup(c, GroupConfig{Group: group, Topic: top, Instance: "a", Session: 6 * time.Second, Heartbeat: 20 * time.Millisecond, Leave: true})
	g.cfg.Session = 200 * time.Millisecond // below what brokers allow: ours ends first
	joined := &tape{}
	g.said.f = func(r string) { joined.add("member=%v", r == "") }
	k.Cluster().ControlKey(int16(kmsg.JoinGroup), func(r kmsg.Request) (kmsg.Response, error, bool) {
		k.Cluster().KeepControl()
		r.(*kmsg.JoinGroupRequest).SessionTimeoutMillis = 6000
		return nil, nil, false
	})
	run(t, func(ctx context.Context) error { return g.Run(ctx, f.own("a")) })
	f.wait(t, "a:2")
	up := down(k)
	f.wait(t, "")
	up()
	f.wait(t, "a:2")
	if got := joined.String(); !strings.HasPrefix(got, "member=false ") || !strings.HasSuffix(got, " member=true") {
		t.Errorf("states %q", got)
	}
}

func TestGroupTwoProcessesWithOneInstance(t *testing.T) {
	_, c := fake(t)
	top, group, f := topic(t, c, 2), name(t, "group"), newFloor()
	said := &tape{}
	first := NewGroup(c, GroupConfig{Group: group, Topic: top, Instance: "same", Heartbeat: 20 * time.Millisecond,
		State: func(r string) { said.add("%s", r) }})
	run(t, func(ctx context.Context) error { return first.Run(ctx, f.own("first")) })
	f.wait(t, "first:2")
	second := NewGroup(c, GroupConfig{Group: group, Topic: top, Instance: "same", Heartbeat: 20 * time.Millisecond})
	run(t, func(ctx context.Context) error {
		return second.Run(ctx, func(ctx context.Context, _ int32) error { <-ctx.Done(); return nil })
	})
	want := fmt.Sprintf("another process runs as instance %q of group %s: give each its own", "same", group)
	eventually(t, "the first says that it was replaced", func() bool { return strings.Contains(said.String(), want) })
	eventually(t, "the first has let go", func() bool { return f.shares() == "" })
}

func TestGroupWaitsForTheTopic(t *testing.T) {
	_, c := fake(t)
	top, group, f := name(t, "late"), name(t, "group"), newFloor()
	said := &tape{}
	g := NewGroup(c, GroupConfig{Group: group, Topic: top, Instance: "a", Heartbeat: 20 * time.Millisecond, State: func(r string) { said.add("[%s]", r) }})
	run(t, func(ctx context.Context) error { return g.Run(ctx, f.own("a")) })
	eventually(t, "it says what it waits for", func() bool { return strings.Contains(said.String(), "topics ensure") })
	makeTopic(t, c, top, 3)
	f.wait(t, "a:3")
}

func TestGroupRunsAnOwnerAgainThatReturnsEarly(t *testing.T) {
	_, c := fake(t)
	top, group := topic(t, c, 1), name(t, "group")
	ended := &tape{}
	g := NewGroup(c, GroupConfig{Group: group, Topic: top, Instance: "a", Ended: func(p int32, err error) { ended.add("%d:%v", p, err) }})
	runs := make(chan struct{}, 100)
	run(t, func(ctx context.Context) error {
		return g.Run(ctx, func(ctx context.Context, _ int32) error {
			runs <- struct{}{}
			if len(runs) < 3 {
				return errors.New("fenced")
			}
			<-ctx.Done()
			return nil
		})
	})
	eventually(t, "it ran three times", func() bool { return len(runs) == 3 })
	if want := "0:fenced 0:fenced"; ended.String() != want {
		t.Errorf("got %q, want %q", ended, want)
	}
}

// A slow owner holds up nobody for longer than StopTimeout, and is not joined by a second one.
func TestOwnersNeverRunTwiceAtATime(t *testing.T) {
	ended := &tape{}
	cfg := GroupConfig{StopTimeout: time.Millisecond, Ended: func(p int32, err error) { ended.add("%d:%v", p, err) }}.withDefaults()
	begin, release := make(chan struct{}, 10), make(chan struct{})
	o := newOwners(cfg, Config{}.WithDefaults(), func(ctx context.Context, _ int32) error {
		begin <- struct{}{}
		<-release
		<-ctx.Done()
		return nil
	})
	o.set([]int32{7})
	<-begin
	if lost := o.set(nil); !lost {
		t.Error("set did not tell of the loss")
	}
	o.set([]int32{7})
	select {
	case <-begin:
		t.Fatal("a second owner ran beside the first")
	case <-time.After(20 * time.Millisecond): // it must not come; a wait can only miss a fault, not invent one
	}
	close(release)
	<-begin
	o.set(nil)
	o.await(o.late)
	if want := "7:" + ErrSlowStop.Error(); !strings.HasPrefix(ended.String(), want) {
		t.Errorf("got %q, want %q", ended, want)
	}
}
