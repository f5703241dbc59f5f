package main

import (
	"context"
	"fmt"
	"os"
	"sync"

	"go.uber.org/zap"
	"google.golang.org/protobuf/proto"

	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/internal/bus"
	"github.com/weirproxy/weir/internal/policy"
	"github.com/weirproxy/weir/test/world"
)

// publish writes an installation and n policies, the first of them the pod's.
func publish(w *world.World, n int) error {
	raw, err := os.ReadFile(w.Key)
	if err != nil {
		return err
	}
	keys, err := wirev1.NewKeys(raw)
	if err != nil {
		return err
	}
	client, err := bus.Dial(context.Background(), bus.Config{Brokers: []string{w.Kafka.Addr()}}, zap.NewNop())
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	topic := bus.Topics{}.WithDefaults().Policies
	out := &outlet{topic: topic, writer: bus.NewWriter(client, bus.WriterConfig{Depth: map[string]int{topic: n + 1}})}
	defer out.writer.Close()
	out.send("installation", &wirev1.PolicyMessage{Body: &wirev1.PolicyMessage_Installation{
		Installation: &wirev1.Installation{Partitions: 4, KeyFingerprint: keys.Fingerprint()},
	}})
	for i := range n {
		docs, err := policy.Parse("start", []byte(document(i)))
		if err != nil {
			return err
		}
		key, p, err := policy.Encode(policy.OriginFile, docs[0], keys, nil)
		if err != nil {
			return err
		}
		out.send(key.String(), &wirev1.PolicyMessage{Body: &wirev1.PolicyMessage_Policy{Policy: p}})
	}
	return out.wait()
}

// document is a policy of three limits.
func document(i int) string {
	name := "orders"
	if i > 0 {
		name = fmt.Sprintf("service-%d", i)
	}
	return fmt.Sprintf(`apiVersion: weirproxy.dev/v1alpha1
kind: QuotaPolicy
metadata: {name: %[1]s, namespace: shop}
spec:
  targetRefs: [{group: "", kind: Service, name: %[1]s}]
  client: [{source: Principal}, {source: Header, name: x-api-key}]
  limits:
  - {name: each-client, counters: [Client], rates: [{limit: 100, window: 1s}, {limit: 2000, window: 1m}]}
  - {name: writes, when: {methods: [POST, PUT], paths: [{type: Template, value: "/orders/{id}"}]}, counters: [Client, Endpoint],
     rates: [{limit: 20, window: 1s, algorithm: TokenBucket, burst: 40}]}
  - {name: whole-service, rates: [{limit: 5000, window: 1s}]}
`, name)
}

// outlet writes records and keeps the first error.
type outlet struct {
	topic  string
	writer *bus.Writer
	open   sync.WaitGroup
	mu     sync.Mutex
	err    error
}

func (o *outlet) send(key string, m *wirev1.PolicyMessage) {
	value, err := proto.Marshal(m)
	if err != nil {
		o.note(err)
		return
	}
	o.open.Add(1)
	err = o.writer.Send(o.topic, 0, []byte(key), value, func(a bus.Ack) { o.note(a.Err); o.open.Done() })
	if err != nil {
		o.note(err)
		o.open.Done()
	}
}

func (o *outlet) note(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err == nil {
		o.err = err
	}
}

func (o *outlet) wait() error {
	o.open.Wait()
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}
