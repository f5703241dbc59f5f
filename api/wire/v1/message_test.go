package wirev1

import (
	"encoding/hex"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

func goldenMessages() map[string]proto.Message {
	logID := []byte("0123456789abcdef")
	level := 12.5
	age := int64(40)
	identity := goldenIdentities()[0]
	return map[string]proto.Message{
		"report": &UsageMessage{Body: &UsageMessage_Report{Report: &UsageReport{
			KeyFingerprint: 0xdeadbeef, Pod: "shop/orders-0", PodEpoch: 7, Sequence: 3, LogId: logID,
			Targets: []*TargetUsage{{Target: "shop/Service/orders", Entries: []*UsageEntry{{
				IdHi: 1, IdLo: 2, Made: 3, Cumulative: 400, Base: 390, Offered: 500, Demand: 20.5,
				MeanCost: 1.5, Burst: 4, SpanMs: 50, AgeMs: 2, Identity: identity.Append(nil),
			}}}},
		}}},
		"claim": &UsageMessage{Body: &UsageMessage_Claim{Claim: &Claim{
			KeyFingerprint: 0xdeadbeef, Instance: "aggregator-0", Nonce: 9, LogId: logID,
		}}},
		"batch": &DecisionBatch{
			Header: &Header{
				LogId: logID, KeyFingerprint: 0xdeadbeef, Epoch: 5, Sequence: 6, Watermark: 7,
				OwnerTimeMs: 1_790_000_000_000, FlushMs: 50, TickMs: 25,
				Targets: []*TargetHeader{{Target: "shop/Service/orders", LivePods: 3, Overflow: []string{"shop/orders/each-client"}}},
				Wanted:  []*CounterID{{Hi: 1, Lo: 2}}, Deferred: true, Instance: "aggregator-0",
			},
			Records: []*Record{{
				IdHi: 1, IdLo: 2, PolicyVersion: 11, Amount: 100, Rate: 100, Remaining: -3.5, Expire1: 4, Expire2: 20,
				Content: 103.5, Demand: 300, MeanCost: 2, ShareSum: 101, Epsilon: 0.5, Level: &level, Grant: 99,
				Burst: 3, Paced: true, BlockedForMs: 120, ResetInMs: 5000,
			}},
		},
		"policy": &PolicyMessage{Body: &PolicyMessage_Policy{Policy: &Policy{
			SchemaVersion: 1, Origin: "file", Namespace: "shop", Name: "orders", Document: []byte(`{}`),
			Targets:    []*ResolvedTarget{{Target: "shop/Service/orders", Selector: []*Label{{Key: "app", Value: "orders"}}}},
			Generation: 4,
		}}},
		"installation": &PolicyMessage{Body: &PolicyMessage_Installation{Installation: &Installation{
			Partitions: 8, UsageTopicId: logID, DecisionsTopicId: logID, KeyFingerprint: 0xdeadbeef,
		}}},
		"status": &PodStatus{
			Pod: "shop/orders-0", PodEpoch: 7, Targets: []string{"shop/Service/orders"}, Ready: true, Degraded: true,
			Policies: []*AppliedPolicy{{Key: "file/shop/orders", Version: 11, Seen: 12, Error: "spec.limits[0]: …", Generation: 4}},
			Reasons:  []string{"no decisions"}, Lags: []*PartitionLag{{Partition: 3, HeaderAgeMs: &age}},
			ProgramVersion: "v0.1.0", KeyFingerprint: 0xdeadbeef,
		},
	}
}

// Every message of version 1, each field set, keeps its bytes: pods outlive releases.
func TestGoldenMessages(t *testing.T) {
	got := map[string]string{}
	for name, m := range goldenMessages() {
		b, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		got[name] = hex.EncodeToString(b)
	}
	golden(t, "messages.json", got)
}

// A golden message leaves no field unset, at any depth, so that a forgotten number cannot hide.
func TestGoldenMessagesAreWhole(t *testing.T) {
	for name, m := range goldenMessages() {
		if n := whole(t, name, m.ProtoReflect()); n < 5 {
			t.Errorf("%s: only %d fields were looked at", name, n)
		}
	}
}

// whole looks at each field of m and of the messages in it, and returns how many there were.
func whole(t *testing.T, name string, m protoreflect.Message) (n int) {
	t.Helper()
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		oneof := f.ContainingOneof() != nil && !f.HasOptionalKeyword()
		if !m.Has(f) {
			if !oneof { // of a oneof one field is set, and the others are in other golden messages
				t.Errorf("%s: field %s is not in the golden message", name, f.FullName())
			}
			continue
		}
		n++
		switch {
		case f.Message() == nil:
		case f.IsList():
			n += whole(t, name, m.Get(f).List().Get(0).Message())
		default:
			n += whole(t, name, m.Get(f).Message())
		}
	}
	return n
}
