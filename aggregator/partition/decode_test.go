package partition

import (
	"bytes"
	"math"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	wirev1 "github.com/weirproxy/weir/api/wire/v1"
)

func sampleReport() *wirev1.UsageMessage {
	return &wirev1.UsageMessage{Body: &wirev1.UsageMessage_Report{Report: &wirev1.UsageReport{
		KeyFingerprint: 7, Pod: "shop/orders-0", PodEpoch: 1 << 63, Sequence: 3, LogId: bytes.Repeat([]byte{9}, 16),
		Targets: []*wirev1.TargetUsage{
			{Target: "shop/Service/orders", Entries: []*wirev1.UsageEntry{
				{IdHi: 1, IdLo: 2, Made: 3, Cumulative: 400, Base: 300, Offered: 500, Demand: 12.5, MeanCost: 2, Burst: 4, SpanMs: 50, AgeMs: 7, Identity: []byte("x")},
				{IdHi: 5, Cumulative: 1},
			}},
			{Target: "shop/Service/other"},
		},
	}}}
}

// The hand-written decoder reads what the generated code reads, and refuses what it refuses.
func FuzzDecodeReport(f *testing.F) {
	b, _ := proto.Marshal(sampleReport())
	f.Add(b)
	b, _ = proto.Marshal(&wirev1.UsageMessage{Body: &wirev1.UsageMessage_Claim{Claim: &wirev1.Claim{Nonce: 4, Instance: "a"}}})
	f.Add(b)
	f.Add([]byte{0x0a})
	f.Fuzz(func(t *testing.T, b []byte) {
		var r report
		m, err := r.decode(b)
		var want wirev1.UsageMessage
		if err2 := proto.Unmarshal(b, &want); err2 != nil {
			return // it also checks UTF-8, which only the target's own name needs
		}
		if err != nil {
			if w := want.GetReport(); w != nil && len(w.Targets) < maxTargets {
				t.Fatalf("refused what protobuf reads: %v", want.String())
			}
			return
		}
		if c := want.GetClaim(); c != nil && !proto.Equal(m.claim, c) && count(b) == 1 {
			t.Fatalf("claim %v, want %v", m.claim, c)
		}
		if w := want.GetReport(); w != nil && count(b) == 1 {
			sameReport(t, &r, w)
		}
	})
}

// count is the number of fields at the top; several bodies in one message are merged by protobuf,
// which no writer of weir does.
func count(b []byte) (n int) {
	_ = fields(b, func(_ protowire.Number, _ protowire.Type, _ value) error { n++; return nil })
	return n
}

func sameReport(t *testing.T, r *report, w *wirev1.UsageReport) {
	t.Helper()
	if r.fingerprint != w.KeyFingerprint || string(r.pod) != w.Pod || r.epoch != w.PodEpoch || !bytes.Equal(r.logID, w.LogId) {
		t.Fatalf("head %+v, want %v", r, w)
	}
	if len(r.targets) != len(w.Targets) {
		t.Fatalf("%d targets, want %d", len(r.targets), len(w.Targets))
	}
	for i, tu := range r.targets {
		if string(tu.name) != w.Targets[i].Target || tu.to-tu.from != len(w.Targets[i].Entries) {
			t.Fatalf("target %d is %q with %d entries, want %v", i, tu.name, tu.to-tu.from, w.Targets[i])
		}
		for j, e := range r.entries[tu.from:tu.to] {
			sameEntry(t, e, w.Targets[i].Entries[j])
		}
	}
}

func sameEntry(t *testing.T, e entry, w *wirev1.UsageEntry) {
	t.Helper()
	same32 := func(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) }
	if (e.id != wirev1.ID{Hi: w.IdHi, Lo: w.IdLo}) || e.made != w.Made || e.cumulative != w.Cumulative || e.base != w.Base ||
		e.offered != w.Offered || !same32(e.demand, w.Demand) || !same32(e.meanCost, w.MeanCost) || !same32(e.burst, w.Burst) ||
		e.spanMillis != w.SpanMs || e.ageMillis != w.AgeMs || !bytes.Equal(e.identity, w.Identity) {
		t.Fatalf("entry %+v, want %v", e, w)
	}
}
