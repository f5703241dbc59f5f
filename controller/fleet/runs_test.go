package fleet

import (
	"slices"
	"testing"
	"time"

	"go.uber.org/zap"
	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weirproxy/weir/internal/bus"
)

// What an earlier run of a pod left behind counts no more once another run was seen; what is of the present
// run counts, whichever of kubelet and sidecar is heard first.
func TestFormerRuns(t *testing.T) {
	const s = time.Second
	type step struct {
		at    time.Duration
		run   string
		epoch uint64
		heard time.Duration
		want  bool
	}
	for name, steps := range map[string][]step{
		"killed, and silent since": {
			{0, "A", 1, 0, false}, {20 * s, "B", 1, 12 * s, true}, {29 * s, "B", 1, 12 * s, true},
		},
		"killed, and back": {
			{0, "A", 1, 0, false}, {20 * s, "B", 1, 12 * s, true}, {22 * s, "B", 2, 21 * s, false}, {40 * s, "B", 2, 31 * s, false},
		},
		"the sidecar is heard before the kubelet": {
			{0, "A", 1, 0, false}, {20 * s, "A", 2, 20 * s, false}, {21 * s, "B", 2, 20 * s, false},
		},
		"first seen after it was back: it counts from its next heartbeat": {
			{0, "A", 2, 0, false}, {1 * s, "B", 2, 0, true}, {12 * s, "B", 2, 10 * s, false}, {13 * s, "B", 2, 10 * s, false},
		},
		"nothing was heard of the run before": {
			{0, "A", 0, 0, false}, {20 * s, "B", 1, 20 * s, false},
		},
		"runs are not known": {
			{0, "", 1, 0, false}, {20 * s, "", 1, 12 * s, false},
		},
	} {
		r := runs{}
		for i, x := range steps {
			if got := r.former("shop/a", x.run, x.epoch, x.heard, x.at); got != x.want {
				t.Errorf("%s, step %d: former %v", name, i, got)
			}
		}
	}
}

// What was said of a record too early is taken back by the heartbeat that shows it: somebody is told, though the
// record says nothing new.
func TestAHeartbeatTakesBackThatARecordIsFormer(t *testing.T) {
	f := New(Config{Topic: "weir.status", Fingerprint: key, Log: zap.NewNop()})
	f.hearing.live = true
	value, err := proto.Marshal(status())
	if err != nil {
		t.Fatal(err)
	}
	beat := func(at time.Duration) []types.NamespacedName {
		names, err := f.record(bus.Message{Key: []byte("shop/a"), Value: value, Appended: began().Add(at)}, at)
		if err != nil {
			t.Fatal(err)
		}
		return sorted(names)
	}
	beat(0)
	if f.runs.former("shop/a", "A", 1, 0, time.Second) || !f.runs.former("shop/a", "B", 1, 0, 2*time.Second) {
		t.Fatal("the record of run A is not taken for a former one in run B")
	}
	if told := beat(4 * time.Second); len(told) > 0 {
		t.Errorf("a record that may be of run A: told of %v", told)
	}
	if told := beat(10 * time.Second); !slices.Equal(told, []types.NamespacedName{shop("orders"), shop("other")}) {
		t.Errorf("a heartbeat of run B: told of %v", told)
	}
	if told := beat(20 * time.Second); len(told) > 0 || f.runs.former("shop/a", "B", 1, 20*time.Second, 21*time.Second) {
		t.Errorf("the next heartbeat: told of %v", told)
	}
}

func TestRunsThatNobodyAsksForAreForgotten(t *testing.T) {
	r := runs{}
	r.former("shop/a", "A", 1, 0, 0)
	r.former("shop/b", "A", 1, 0, 5*time.Minute)
	if r.tick(11 * time.Minute); len(r) != 1 || r["shop/b"] == nil {
		t.Errorf("kept %v", r)
	}
}
