package fleet

import (
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/types"

	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/internal/bus"
)

const key = 7 // the installation's fingerprint

func began() time.Time { return time.UnixMilli(1_790_000_000_000) }

func shop(policy string) types.NamespacedName {
	return types.NamespacedName{Namespace: "shop", Name: policy}
}

// status is what the pod shop/a reports, with one policy in force.
func status(change ...func(*wirev1.PodStatus)) *wirev1.PodStatus {
	s := &wirev1.PodStatus{
		Pod: "shop/a", PodEpoch: 1, Targets: []string{"shop/Service/orders"}, Ready: true, KeyFingerprint: key, ProgramVersion: "v1",
		Policies: []*wirev1.AppliedPolicy{
			{Key: "kube/shop/orders", Version: 5, Seen: 5, Generation: 1},
			{Key: "kube/shop/other", Version: 6, Seen: 6, Generation: 1},
			{Key: "kube/elsewhere/orders", Version: 7, Seen: 7, Generation: 1},
			{Key: "file/shop/orders", Version: 8, Seen: 8},
			{Key: "nonsense"},
		},
	}
	for _, f := range change {
		f(s)
	}
	return s
}

// tape feeds a book; its time is the broker's and the reader's alike.
type tape struct {
	*book
	t *testing.T
}

func (b tape) record(pod string, at time.Duration, s *wirev1.PodStatus) []types.NamespacedName {
	b.t.Helper()
	m := bus.Message{Topic: "weir.status", Key: []byte(pod), Appended: began().Add(at)}
	if s != nil {
		value, err := proto.Marshal(s)
		if err != nil {
			b.t.Fatal(err)
		}
		m.Value = value
	}
	names, err := b.read(m, true, at)
	if err != nil {
		b.t.Fatal(err)
	}
	return sorted(names)
}

func sorted(names []types.NamespacedName) []types.NamespacedName {
	slices.SortFunc(names, func(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) })
	return names
}

func (b tape) told(what string, got []types.NamespacedName, want ...types.NamespacedName) {
	b.t.Helper()
	if !slices.Equal(sorted(got), want) {
		b.t.Errorf("%s: told of %v, want %v", what, got, want)
	}
}

// Only what changes a policy's picture is told of: a fleet's heartbeats are silent.
func TestWhatIsToldOf(t *testing.T) {
	b := tape{newBook(), t}
	orders, other := shop("orders"), shop("other")
	b.told("a new pod", b.record("shop/a", 0, status()), orders, other)
	b.told("a heartbeat", b.record("shop/a", 10*time.Second, status()))
	b.told("degraded", b.record("shop/a", 11*time.Second, status(func(s *wirev1.PodStatus) { s.Degraded = true })), orders, other)
	b.told("no more", b.record("shop/a", 11*time.Second, status()), orders, other)
	b.told("another reason", b.record("shop/a", 11*time.Second, status(func(s *wirev1.PodStatus) { s.Reasons = []string{"x"} })))
	b.told("a new version of one policy", b.record("shop/a", 12*time.Second, status(func(s *wirev1.PodStatus) {
		s.Policies[0].Version, s.Policies[0].Generation = 9, 2
	})), orders)
	b.told("a policy less", b.record("shop/a", 13*time.Second, status(func(s *wirev1.PodStatus) { s.Policies = s.Policies[1:] })), orders)
	b.told("another run", b.record("shop/a", 14*time.Second, status(func(s *wirev1.PodStatus) { s.PodEpoch = 2 })), orders, other)
	b.told("another target", b.record("shop/a", 15*time.Second, status(func(s *wirev1.PodStatus) { s.PodEpoch, s.Targets = 2, nil })), orders, other)
	b.told("29 s of silence", b.tick(44*time.Second))
	b.told("31 s of silence", b.tick(46*time.Second), orders, other)
	b.told("more silence", b.tick(47*time.Second))
	b.told("heard again", b.record("shop/a", 48*time.Second, status(func(s *wirev1.PodStatus) { s.PodEpoch, s.Targets = 2, nil })), orders, other)
	b.told("a tombstone", b.record("shop/a", 49*time.Second, nil), orders, other)
	b.told("another tombstone", b.record("shop/a", 50*time.Second, nil))
}

// A reader that begins with old records takes them as old, not as just heard.
func TestOldRecordsAreStaleAtOnce(t *testing.T) {
	b := tape{newBook(), t}
	b.record("shop/a", 0, status())
	m := status(func(s *wirev1.PodStatus) { s.Pod = "shop/b" })
	value, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.read(bus.Message{Key: []byte("shop/b"), Value: value, Appended: began().Add(time.Minute)}, true, 0); err != nil {
		t.Fatal(err)
	}
	if !b.isStale(b.pods["shop/a"], 0) || b.isStale(b.pods["shop/b"], 0) {
		t.Error("a record of a minute ago must be stale, the newest one not")
	}
}

// Before a record is heard as it is appended, ages are not known, and nobody counts as live; then all are.
func TestUntilOneIsHeardNobodyIsLive(t *testing.T) {
	b := tape{newBook(), t}
	read := func(pod string, at time.Duration) {
		t.Helper()
		value, err := proto.Marshal(status(func(s *wirev1.PodStatus) { s.Pod = pod }))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.read(bus.Message{Key: []byte(pod), Value: value, Appended: began().Add(at)}, false, time.Second); err != nil {
			t.Fatal(err)
		}
	}
	read("shop/long-gone", -time.Hour)
	read("shop/lives", -time.Second)
	if b.told("before one is heard", b.tick(2*time.Second)); !b.isStale(b.pods["shop/lives"], 2*time.Second) {
		t.Error("a record of unknown age counts as fresh")
	}
	b.record("shop/a", 3*time.Second, status())
	if !b.isStale(b.pods["shop/long-gone"], 3*time.Second) || b.isStale(b.pods["shop/lives"], 3*time.Second) {
		t.Error("once one is heard, the ages of all are known")
	}
	b.told("what was silent before is no news", b.tick(4*time.Second))
	b.told("31 s of silence", b.tick(30*time.Second), shop("orders"), shop("other"))
}

// Of whose end nobody told is dropped after an hour.
func TestWhoIsLongSilentIsDropped(t *testing.T) {
	b := tape{newBook(), t}
	b.record("shop/a", 0, status())
	b.record("shop/b", time.Minute, status(func(s *wirev1.PodStatus) { s.Pod = "shop/b" }))
	at := time.Hour + time.Second
	b.tick(at)
	b.told("after an hour", b.expire(at), shop("orders"), shop("other"))
	if b.pods["shop/a"] != nil || b.pods["shop/b"] == nil || b.applied != len(b.pods["shop/b"].policies) {
		t.Errorf("pods %v with %d policies are left", b.pods, b.applied)
	}
	if b.clear(); len(b.pods)+len(b.byTarget)+b.applied != 0 || !b.clock.Known() {
		t.Errorf("of a topic made anew there are pods %v", b.pods)
	}
}

func TestAGatewayIsFoundByTheTargetsThatItNames(t *testing.T) {
	b := tape{newBook(), t}
	const route = "shop/HTTPRoute/orders"
	for _, pod := range []string{"edge/gw-1", "edge/gw-0"} {
		told := b.record(pod, 0, status(func(s *wirev1.PodStatus) { s.Pod, s.Targets = pod, []string{route, route} }))
		b.told("a gateway in another namespace", told, shop("orders"), shop("other"))
	}
	if got := b.naming(route); !slices.Equal(got, []string{"edge/gw-0", "edge/gw-1"}) {
		t.Errorf("naming %s: %v", route, got)
	}
	b.record("edge/gw-0", time.Second, nil)
	b.record("edge/gw-1", time.Second, status(func(s *wirev1.PodStatus) { s.Pod = "edge/gw-1" }))
	if got := b.naming(route); len(got) != 0 || len(b.byTarget) != 1 {
		t.Errorf("naming %s after all have gone: %v of %v", route, got, b.byTarget)
	}
}

func TestRecordsOfNoPodAreCounted(t *testing.T) {
	b := newBook()
	for _, m := range []bus.Message{
		{Key: []byte("shop/a"), Value: []byte("\xff")},
		{Key: []byte("shop/b"), Value: []byte{}},
		{Value: []byte{}},
	} {
		if names, err := b.read(m, true, 0); err == nil || len(names) > 0 {
			t.Errorf("%q: told of %v, error %v", m.Key, names, err)
		}
	}
	if b.skipped != 3 || len(b.pods) != 0 {
		t.Errorf("skipped %d, pods %d", b.skipped, len(b.pods))
	}
}

// What is kept of all pods together has a bound, and what goes makes room.
func TestTheMirrorIsBounded(t *testing.T) {
	b := tape{newBook(), t}
	b.applied = maxApplied - 1
	m := status()
	value, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.read(bus.Message{Key: []byte("shop/a"), Value: value, Appended: began()}, true, 0); err == nil || len(b.pods) != 0 {
		t.Errorf("%d pods beyond the bound, error %v", len(b.pods), err)
	}
	b.applied = 0
	b.record("shop/a", 0, m)
	b.record("shop/a", 1, nil)
	if b.applied != 0 {
		t.Errorf("%d policies are counted of no pod", b.applied)
	}
}
