package fleet

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"go.uber.org/zap"
	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/types"

	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/internal/bus"
	"github.com/weirproxy/weir/internal/embedded"
)

// go-metrics, which Sarama uses, keeps one ticking goroutine for the life of a process.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("github.com/rcrowley/go-metrics.(*meterArbiter).tick"))
}

// onEach runs f on the embedded broker, and on a real one where WEIR_TEST_KAFKA names it.
func onEach(t *testing.T, f func(t *testing.T, k *kit)) {
	t.Run("embedded", func(t *testing.T) {
		broker, err := embedded.StartKafka("")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(broker.Close)
		f(t, newKit(t, broker.Addr()))
	})
	if addrs := os.Getenv("WEIR_TEST_KAFKA"); addrs != "" {
		t.Run("real", func(t *testing.T) { f(t, newKit(t, strings.Split(addrs, ",")...)) })
	}
}

type kit struct {
	t      *testing.T
	client *bus.Client
	topics bus.Topics
	topic  string
	writer *bus.Writer
}

func newKit(t *testing.T, brokers ...string) *kit {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	client, err := bus.Dial(ctx, bus.Config{Brokers: brokers, BackoffMin: 5 * time.Millisecond, BackoffMax: 50 * time.Millisecond}, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	prefix := fmt.Sprintf("weir-test.fleet.%d.", time.Now().UnixNano())
	topics := bus.Topics{Usage: prefix + "u", Decisions: prefix + "d", Policies: prefix + "p", Status: prefix + "s", Partitions: 1, Replication: 1}
	if _, err := client.Ensure(ctx, topics, false); err != nil {
		t.Fatal(err)
	}
	k := &kit{t: t, client: client, topics: topics, topic: topics.Status, writer: bus.NewWriter(client, bus.WriterConfig{})}
	t.Cleanup(k.writer.Close)
	return k
}

func (k *kit) write(pod string, s *wirev1.PodStatus) {
	k.t.Helper()
	var value []byte
	if s != nil {
		s.Pod = pod
		var err error
		if value, err = proto.Marshal(s); err != nil {
			k.t.Fatal(err)
		}
	}
	acked := make(chan bus.Ack, 1)
	if err := k.writer.Send(k.topic, 0, []byte(pod), value, func(a bus.Ack) { acked <- a }); err != nil {
		k.t.Fatal(err)
	}
	if a := <-acked; a.Err != nil {
		k.t.Fatal(a.Err)
	}
}

func (k *kit) run(f *Fleet) {
	k.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx, k.client) }()
	k.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			k.t.Errorf("Run returned %v", err)
		}
	})
	select {
	case <-f.Ready():
	case <-time.After(30 * time.Second):
		k.t.Fatal("the topic was never read to its end")
	}
}

// next is what the fleet tells of.
func (k *kit) next(f *Fleet) []types.NamespacedName {
	k.t.Helper()
	ctx, cancel := context.WithTimeout(k.t.Context(), 30*time.Second)
	defer cancel()
	b, err := f.Changes().Next(ctx)
	if err != nil {
		k.t.Fatal(err)
	}
	if b.All {
		return []types.NamespacedName{{Name: "all"}}
	}
	return b.Names
}

// The fleet follows the topic: what was there before it began, and each change.
func TestFleetFollowsTheTopic(t *testing.T) {
	onEach(t, func(t *testing.T, k *kit) {
		k.write("shop/a", status())
		f := New(Config{Topic: k.topic, Fingerprint: key, Log: zap.NewNop(), Pause: time.Millisecond})
		if f.Waiting() == "" {
			t.Error("a fleet that reads nothing waits for nothing")
		}
		k.run(f)
		if got := k.next(f); got[0].Name != "all" || !strings.Contains(f.Waiting(), "no sidecar has been heard") {
			t.Errorf("first told of %v, waits for %q", got, f.Waiting())
		}
		if r, ok := f.Report("shop/a", "A", shop("orders")); !ok || !r.Stale {
			t.Errorf("before anybody is heard: report %+v, %v", r, ok)
		}
		k.write("shop/a", status())
		if got := k.next(f); got[0].Name != "all" || f.Waiting() != "" {
			t.Errorf("once one is heard told of %v, waits for %q", got, f.Waiting())
		}
		r, ok := f.Report("shop/a", "A", shop("orders"))
		if !ok || r.Version != 5 || r.Generation != 1 || r.Stale || r.Foreign || r.Former || !slices.Equal(r.Targets, []string{"shop/Service/orders"}) {
			t.Errorf("report %+v, %v", r, ok)
		}
		if r, ok := f.Report("shop/a", "A", shop("unknown")); !ok || r.Version != -1 {
			t.Errorf("of a policy that the pod does not know: %+v, %v", r, ok)
		}
		if _, ok := f.Report("shop/b", "A", shop("orders")); ok {
			t.Error("a pod that never reported has a report")
		}
		if r, _ := f.Report("shop/a", "B", shop("orders")); !r.Former {
			t.Errorf("after a restart that was not heard of: %+v", r)
		}
		k.write("shop/b", status(func(s *wirev1.PodStatus) { s.KeyFingerprint, s.ProgramVersion = key+1, "v2" }))
		if got := k.next(f); !slices.Equal(got, []types.NamespacedName{shop("orders"), shop("other")}) {
			t.Errorf("told of %v", got)
		}
		if r, ok := f.Report("shop/b", "", shop("orders")); !ok || !r.Foreign {
			t.Errorf("another identity key: %+v, %v", r, ok)
		}
		pods := f.Pods()
		if len(pods) != 2 || pods[1].Name != "shop/b" || pods[1].ProgramVersion != "v2" || pods[1].Fingerprint != key+1 || pods[1].Stale {
			t.Errorf("pods %+v", pods)
		}
		f.tick(f.now() + time.Minute)
		if got := k.next(f); !slices.Equal(got, []types.NamespacedName{shop("orders"), shop("other")}) {
			t.Errorf("after a minute of silence told of %v", got)
		}
		k.write("shop/a", nil)
		k.next(f)
		if _, ok := f.Report("shop/a", "", shop("orders")); ok {
			t.Error("a pod that left has a report")
		}
	})
}

// Of a topic that is made anew nothing of the last one is left, and who says it again counts again.
func TestATopicMadeAnewBeginsEmpty(t *testing.T) {
	broker, err := embedded.StartKafka("")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(broker.Close)
	k := newKit(t, broker.Addr())
	k.write("shop/gone", status())
	f := New(Config{Topic: k.topic, Fingerprint: key, Log: zap.NewNop(), Pause: time.Millisecond})
	k.run(f)
	k.write("shop/a", status())
	k.eventually("it is heard", func() bool { return f.Waiting() == "" && len(f.Pods()) == 2 })

	if err := broker.Cluster().DeleteTopic(k.topic); err != nil {
		t.Fatal(err)
	}
	if _, err := k.client.Ensure(t.Context(), k.topics, false); err != nil {
		t.Fatal(err)
	}
	k.write("shop/a", status())
	k.eventually("only who said it again is known", func() bool {
		pods := f.Pods()
		return len(pods) == 1 && pods[0].Name == "shop/a" && !pods[0].Stale
	})
	if w := f.Waiting(); !strings.Contains(w, "until a moment ago") {
		t.Errorf("others have not had the time to say it: %q is waited for", w)
	}
}

func (k *kit) eventually(what string, is func() bool) {
	k.t.Helper()
	for end := time.Now().Add(30 * time.Second); !is(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			k.t.Fatalf("it never came that %s", what)
		}
	}
}
