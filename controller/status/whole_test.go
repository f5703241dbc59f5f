package status_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weirproxy/weir/api/v1alpha1"
	"github.com/weirproxy/weir/api/v1alpha1/kube"
	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/controller/fleet"
	"github.com/weirproxy/weir/controller/publish"
	"github.com/weirproxy/weir/controller/status"
	"github.com/weirproxy/weir/internal/bus"
	"github.com/weirproxy/weir/internal/embedded"
	"github.com/weirproxy/weir/internal/policy"
	"github.com/weirproxy/weir/sidecar"
)

// go-metrics, which Sarama uses, keeps one ticking goroutine for the life of a process.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("github.com/rcrowley/go-metrics.(*meterArbiter).tick"))
}

// Case 25, with sidecars as they run in pods: the status follows what they enforce, and falls back when one is
// gone. A second controller says the same and writes nothing.
func TestTheStatusFollowsSidecars(t *testing.T) {
	t.Run("embedded", func(t *testing.T) {
		broker, err := embedded.StartKafka("")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(broker.Close)
		follow(t, broker.Addr())
	})
	if addrs := os.Getenv("WEIR_TEST_KAFKA"); addrs != "" {
		t.Run("real", func(t *testing.T) { follow(t, strings.Split(addrs, ",")...) })
	}
}

func follow(t *testing.T, brokers ...string) {
	s := newShop(t, brokers)
	c := s.controller()
	a, b := s.sidecar("a"), s.sidecar("b")
	s.pods = []string{"a", "b"}

	c.publish(1, "100")
	c.comes("both enforce generation 1", "True Programmed 2/2 oldest 1")
	c.publish(2, "50")
	c.comes("both enforce generation 2", "True Programmed 2/2 oldest 2")

	b.stop()
	c.comes("one has gone, and its pod is still there", "False PartiallyProgrammed 1/2 oldest 2")
	b = s.sidecar("b")
	c.comes("it is back", "True Programmed 2/2 oldest 2")
	s.bare = []string{"c"}
	c.comes("a third pod has no sidecar", "False PartiallyProgrammed 2/3 oldest 2")
	s.bare = nil
	c.comes("it is gone", "True Programmed 2/2 oldest 2")

	said, end := c.status(), s.end()
	c.stop()
	c = s.controller()
	c.publish(2, "50")
	if again := c.statusAfter(said); !reflect.DeepEqual(again, said) || s.end() != end {
		t.Errorf("a second controller says\n%+v\nnot\n%+v\nand the topic ends at %d, not %d", again, said, s.end(), end)
	}

	if err := c.topic.Delete(t.Context(), s.policy()); err != nil {
		t.Fatal(err)
	}
	s.eventually("no sidecar has the policy", func() bool {
		return c.version("a") == -1 && c.version("b") == -1
	})
	a.stop()
	b.stop()
}

// shop is a namespace with one policy on one Service, and Kafka.
type shop struct {
	t       *testing.T
	brokers []string
	client  *bus.Client
	topics  bus.Topics
	key     []byte
	pods    []string // with a sidecar
	bare    []string // without
}

func newShop(t *testing.T, brokers []string) *shop {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	client, err := bus.Dial(ctx, bus.Config{Brokers: brokers}, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	prefix := fmt.Sprintf("weir-test.status.%d.", time.Now().UnixNano())
	s := &shop{t: t, brokers: brokers, client: client, key: make([]byte, wirev1.KeySize), topics: bus.Topics{
		Usage: prefix + "u", Decisions: prefix + "d", Policies: prefix + "p", Status: prefix + "s", Partitions: 1, Replication: 1,
	}}
	if _, err := client.Ensure(ctx, s.topics, false); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *shop) policy() types.NamespacedName {
	return types.NamespacedName{Namespace: "shop", Name: "orders"}
}

func (s *shop) end() int64 {
	s.t.Helper()
	n, err := s.client.Newest(s.t.Context(), s.topics.Policies, 0)
	if err != nil {
		s.t.Fatal(err)
	}
	return n
}

func (s *shop) eventually(what string, is func() bool) {
	s.t.Helper()
	for end := time.Now().Add(40 * time.Second); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			s.t.Fatalf("it never came that %s", what)
		}
	}
}

// running is a part that runs until it is stopped.
type running struct{ stop func() }

func (s *shop) run(part func(context.Context) error) running {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- part(ctx) }()
	stop := sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			s.t.Errorf("a part ended with %v", err)
		}
	})
	s.t.Cleanup(stop)
	return running{stop}
}

// sidecar runs beside the pod of this name.
func (s *shop) sidecar(name string) running {
	s.t.Helper()
	c, err := sidecar.New(sidecar.Config{
		Listen: "unix://" + filepath.Join(s.t.TempDir(), "check.sock"), Namespace: "shop", Pod: name, Labels: map[string]string{"app": "orders"},
		IdentityKey: s.key, Kafka: bus.Config{Brokers: s.brokers}, Topics: s.topics,
	}, zap.NewNop())
	if err != nil {
		s.t.Fatal(err)
	}
	return s.run(c.Run)
}

// controller is the part of one that this is about.
type controller struct {
	*shop
	topic *publish.Topic
	fleet *fleet.Fleet
	parts []running

	generation int64
	last       kube.QuotaPolicyStatus
	spec       *v1alpha1.QuotaPolicySpec
	published  publish.Published
}

func (s *shop) controller() *controller {
	s.t.Helper()
	keys, err := wirev1.NewKeys(s.key)
	if err != nil {
		s.t.Fatal(err)
	}
	c := &controller{
		shop:  s,
		topic: publish.New(publish.Config{Name: s.topics.Policies, Keys: keys, Log: zap.NewNop()}),
		fleet: fleet.New(fleet.Config{Topic: s.topics.Status, Fingerprint: keys.Fingerprint(), Log: zap.NewNop()}),
	}
	for _, run := range []func(context.Context, *bus.Client) error{c.topic.Run, c.fleet.Run} {
		c.parts = append(c.parts, s.run(func(ctx context.Context) error { return run(ctx, s.client) }))
	}
	s.eventually("both topics are read", func() bool { return c.topic.Waiting()+c.fleet.Waiting() == "" })
	return c
}

func (c *controller) stop() {
	for _, p := range c.parts {
		p.stop()
	}
}

func (c *controller) publish(generation int64, limit string) {
	c.t.Helper()
	docs, err := policy.Parse("test", []byte(`apiVersion: weirproxy.dev/v1alpha1
kind: QuotaPolicy
metadata: {name: orders, namespace: shop}
spec:
  targetRefs: [{group: "", kind: Service, name: orders}]
  limits: [{name: all, rates: [{limit: `+limit+`, window: 1m}]}]
`))
	if err != nil {
		c.t.Fatal(err)
	}
	c.generation, c.spec = generation, &docs[0].Spec
	c.published, err = c.topic.Publish(c.t.Context(), publish.Desired{
		Document: docs[0], Generation: generation,
		Targets: []policy.Target{{Name: "shop/Service/orders", Selector: map[string]string{"app": "orders"}}},
	})
	if err != nil {
		c.t.Fatal(err)
	}
}

func (c *controller) version(pod string) int64 {
	r, _ := c.fleet.Report("shop/"+pod, "", c.policy())
	return r.Version
}

// status makes the next status of the last one.
func (c *controller) status() kube.QuotaPolicyStatus {
	f := status.Facts{Generation: c.generation, Spec: c.spec, Published: c.published, Deaf: c.fleet.Waiting()}
	for _, name := range c.pods {
		p := status.Pod{Name: name, Targets: []string{"shop/Service/orders"}, Sidecar: true}
		if r, ok := c.fleet.Report("shop/"+name, "", c.policy()); ok {
			p.Report = &r
		}
		f.Pods = append(f.Pods, p)
	}
	for _, name := range c.bare {
		f.Pods = append(f.Pods, status.Pod{Name: name, Targets: []string{"shop/Service/orders"}})
	}
	c.last = status.Make(f, c.last, time.Now())
	return c.last
}

func (c *controller) statusAfter(last kube.QuotaPolicyStatus) kube.QuotaPolicyStatus {
	c.last = last
	return c.status()
}

func (c *controller) comes(what, want string) {
	c.t.Helper()
	got := ""
	defer func() {
		if c.t.Failed() {
			c.t.Logf("the last status was %s: %+v", got, c.last)
		}
	}()
	c.eventually(what, func() bool {
		s := c.status()
		p := meta.FindStatusCondition(s.Conditions, kube.ConditionProgrammed)
		got = fmt.Sprintf("%s %s %s oldest %d", p.Status, p.Reason, s.Pods.Ratio, s.Pods.OldestGeneration)
		return got == want && p.ObservedGeneration == c.generation && (p.Status == metav1.ConditionTrue) == (s.Pods.Enforcing == s.Pods.Total)
	})
}
