package policytopic

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"google.golang.org/protobuf/proto"

	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/internal/bus"
	"github.com/weirproxy/weir/internal/policy"
)

const document = `apiVersion: weirproxy.dev/v1alpha1
kind: QuotaPolicy
metadata: {name: orders, namespace: shop}
spec:
  targetRefs: [{group: "", kind: Service, name: orders}]
  client: [{source: Header, name: x-api-key}]
  limits:
  - name: all
    counters: [Client]
    rates: [{limit: 5, window: 1s}]
    overrides: [{clients: [{source: Header, name: x-api-key, value: hunter2}], unlimited: true}]
`

func record(t *testing.T) Record {
	t.Helper()
	keys, err := wirev1.NewKeys(make([]byte, wirev1.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	docs, err := policy.Parse("orders.yaml", []byte(document))
	if err != nil {
		t.Fatal(err)
	}
	r, err := NewRecord(Source{
		Origin: policy.OriginKube, Document: docs[0], Generation: 7,
		Targets: []*wirev1.ResolvedTarget{{Target: "shop/Service/orders", Selector: []*wirev1.Label{{Key: "app", Value: "orders"}}}},
	}, keys)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// A record is all that a reader needs, and holds no secret.
func TestRecord(t *testing.T) {
	r := record(t)
	if bytes.Contains(r.Value, []byte("hunter2")) {
		t.Error("the record holds a client's key in plain text")
	}
	var m wirev1.PolicyMessage
	if err := proto.Unmarshal(r.Value, &m); err != nil {
		t.Fatal(err)
	}
	p, err := policy.Decode(r.Key, 3, m.GetPolicy())
	if err != nil {
		t.Fatal(err)
	}
	if p.Generation != 7 || p.Version != 3 || p.Targets[0].Selector["app"] != "orders" {
		t.Errorf("decoded %+v", p)
	}
}

// sends answers each Send with one acknowledgement, or does not answer.
type sends struct {
	refuse error
	answer *bus.Ack
}

func (s sends) Send(_ string, _ int32, _, _ []byte, done func(bus.Ack)) error {
	if s.answer != nil {
		go done(*s.answer)
	}
	return s.refuse
}

func TestPublishTellsWhatBecameOfARecord(t *testing.T) {
	away := errors.New("away")
	ended, end := context.WithCancel(t.Context())
	end()
	for name, c := range map[string]struct {
		ctx     context.Context
		sender  sends
		version int64
		err     error
	}{
		"acknowledged":     {t.Context(), sends{answer: &bus.Ack{Offset: 41}}, 41, nil},
		"failed":           {t.Context(), sends{answer: &bus.Ack{Err: away}}, 0, away},
		"not taken":        {t.Context(), sends{refuse: bus.ErrBusy}, 0, bus.ErrBusy},
		"nobody waits now": {ended, sends{}, 0, context.Canceled},
	} {
		version, err := Publish(c.ctx, c.sender, "weir.policies", record(t))
		if version != c.version || !errors.Is(err, c.err) {
			t.Errorf("%s: version %d, error %v", name, version, err)
		}
	}
}
