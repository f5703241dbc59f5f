package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"go.uber.org/zap"
	"google.golang.org/protobuf/proto"

	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/internal/bus"
	"github.com/weirproxy/weir/internal/embedded"
	"github.com/weirproxy/weir/internal/policy"
)

func TestMain(m *testing.M) {
	// The library of Kafka keeps one goroutine of meters for ever.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/rcrowley/go-metrics.(*meterArbiter).tick"))
}

// kafkaWithTopics is a broker with weir's topics, and a client of it.
func kafkaWithTopics(t *testing.T) (addr string, client *bus.Client) {
	t.Helper()
	k, err := embedded.StartKafka("")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.Close)
	client, err = bus.Dial(t.Context(), bus.Config{Brokers: []string{k.Addr()}}, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	if _, err := client.Ensure(t.Context(), bus.Topics{}, false); err != nil {
		t.Fatal(err)
	}
	return k.Addr(), client
}

// put writes one record to the policy topic as another program would.
func put(t *testing.T, client *bus.Client, key string, m *wirev1.PolicyMessage) {
	t.Helper()
	b, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	w := bus.NewWriter(client, bus.WriterConfig{})
	defer w.Close()
	acked := make(chan bus.Ack, 1)
	if err := w.Send("weir.policies", 0, []byte(key), b, func(a bus.Ack) { acked <- a }); err != nil {
		t.Fatal(err)
	}
	if a := <-acked; a.Err != nil {
		t.Fatal(a.Err)
	}
}

// all reads the topic to its end: the newest value of each key.
func all(t *testing.T, client *bus.Client) map[string]*wirev1.PolicyMessage {
	t.Helper()
	found := map[string]*wirev1.PolicyMessage{}
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
	defer stop()
	r := bus.NewReader(client, bus.ReaderConfig{
		Topic: "weir.policies", Partitions: map[int32]bus.From{0: {}},
		Handle: func(m bus.Message) {
			if m.Value == nil {
				delete(found, string(m.Key))
				return
			}
			var p wirev1.PolicyMessage
			if err := proto.Unmarshal(m.Value, &p); err != nil {
				t.Error(err)
			}
			found[string(m.Key)] = &p
		},
		CaughtUp: func(int32) { stop() },
	})
	if err := r.Run(ctx); err != nil {
		t.Fatal(err)
	}
	return found
}

func TestApplyPublishesWithoutSecretsAndTakesBack(t *testing.T) {
	addr, client := kafkaWithTopics(t)
	key, file := newKey(t), write(t, "p.yaml", goodPolicy)
	args := []string{"apply", "-f", file, "--kafka-brokers", addr, "--identity-key-file", key}

	if o := weir(t, "", args...); o.code != 0 || o.out != "cli/shop/orders published\n" || o.err != "" {
		t.Fatalf("apply: %+v", o)
	}
	msg := all(t, client)["cli/shop/orders"].GetPolicy()
	if msg == nil || strings.Contains(string(msg.GetDocument()), "acme") {
		t.Fatalf("published: %v", msg)
	}
	if _, err := policy.Decode(policy.Key{Origin: "cli", Namespace: "shop", Name: "orders"}, 1, msg); err != nil {
		t.Errorf("a sidecar would refuse it: %v", err)
	}
	if o := weir(t, "", append(args, "--delete")...); o.code != 0 || o.out != "cli/shop/orders deleted\n" {
		t.Errorf("delete: %+v", o)
	}
	if left := all(t, client); len(left) != 0 {
		t.Errorf("left after deletion: %v", left)
	}
}

func TestApplyPublishesNothingWhereAFileIsInvalid(t *testing.T) {
	addr, client := kafkaWithTopics(t)
	bad := write(t, "bad.yaml", strings.Replace(goodPolicy, "limit: 100,", "limit: 0,", 1))
	other := write(t, "good.yaml", strings.Replace(goodPolicy, "name: orders, namespace", "name: carts, namespace", 1))
	o := weir(t, "", "apply", "-f", other, "-f", bad, "--kafka-brokers", addr, "--identity-key-file", newKey(t))
	if o.code != 1 || !strings.Contains(o.err, "nothing is published") || !strings.Contains(o.err, "rates[0].limit") {
		t.Errorf("apply: %+v", o)
	}
	if got := all(t, client); len(got) != 0 {
		t.Errorf("published all the same: %v", got)
	}
}

func TestApplyRefusesAnotherInstallationsKeyAndSaysWhoGoesFirst(t *testing.T) {
	addr, client := kafkaWithTopics(t)
	key, file := newKey(t), write(t, "p.yaml", goodPolicy)
	put(t, client, "kube/shop/orders", &wirev1.PolicyMessage{Body: &wirev1.PolicyMessage_Policy{Policy: &wirev1.Policy{SchemaVersion: 1}}})
	args := []string{"apply", "-f", file, "--kafka-brokers", addr, "--identity-key-file", key}
	if o := weir(t, "", args...); o.code != 0 || !strings.Contains(o.err, "kube/shop/orders is in force, so cli/shop/orders is not") {
		t.Errorf("conflict: %+v", o)
	}
	put(t, client, "installation", &wirev1.PolicyMessage{Body: &wirev1.PolicyMessage_Installation{
		Installation: &wirev1.Installation{Partitions: 8, KeyFingerprint: 0x01020304}}})
	if o := weir(t, "", args...); o.code != 1 || !strings.Contains(o.err, "another key") {
		t.Errorf("another key: %+v", o)
	}
}

func TestApplySaysWhatItWaitsFor(t *testing.T) {
	key, file := newKey(t), write(t, "p.yaml", goodPolicy)
	o := weir(t, "", "apply", "-f", file, "--kafka-brokers", "127.0.0.1:1", "--identity-key-file", key, "--timeout", "300ms")
	if o.code != 1 || !strings.Contains(o.err, "Kafka") || !strings.Contains(o.err, "127.0.0.1:1") {
		t.Errorf("no broker: %+v", o)
	}
	if o := weir(t, "", "apply", "-f", file); o.code != 1 || !strings.Contains(o.err, "weir key") {
		t.Errorf("no key: %+v", o)
	}
	if o := weir(t, "", "apply"); o.code != 2 {
		t.Errorf("no file: %+v", o)
	}
	k, err := embedded.StartKafka("")
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	o = weir(t, "", "apply", "-f", file, "--kafka-brokers", k.Addr(), "--identity-key-file", key, "--timeout", "500ms")
	if o.code != 1 || !strings.Contains(o.err, "topics ensure") {
		t.Errorf("no topic: %+v", o)
	}
}
