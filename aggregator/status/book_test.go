package status

import (
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/internal/bus"
)

var epoch = time.UnixMilli(1_700_000_000_000)

func heartbeat(pod string, at time.Duration, targets ...string) bus.Message {
	b, _ := proto.Marshal(&wirev1.PodStatus{Pod: pod, KeyFingerprint: 7, Targets: targets})
	return bus.Message{Key: []byte(pod), Value: b, Appended: epoch.Add(at)}
}

// A new aggregator reads old records: their age is by append time, not by receipt.
func TestStalePodsDoNotCount(t *testing.T) {
	b := NewBook(7)
	b.Apply(heartbeat("shop/old", 0, "shop/Service/a"), 0)
	b.Apply(heartbeat("shop/new", 40*time.Second, "shop/Service/a", "shop/Service/b", "shop/Service/a"), 0)
	if got := b.Live(0); got["shop/Service/a"] != 1 || got["shop/Service/b"] != 1 {
		t.Errorf("live %v, want 1 pod of each: one has been silent for 40 s", got)
	}
	if got := b.Live(31 * time.Second); len(got) != 0 {
		t.Errorf("live %v after 31 s of silence, want none", got)
	}
	if !b.Apply(heartbeat("shop/new", 72*time.Second, "shop/Service/a"), 32*time.Second) {
		t.Error("a pod that came back changed nothing")
	}
}

func TestTombstonesAndStrangers(t *testing.T) {
	b := NewBook(7)
	b.Apply(heartbeat("shop/a", 0, "shop/Service/a"), 0)
	for _, m := range []bus.Message{
		{Key: []byte("shop/b"), Value: []byte("\xff"), Appended: epoch},
		{Key: []byte("shop/c"), Value: heartbeat("shop/d", 0, "shop/Service/a").Value, Appended: epoch},
	} {
		if b.Apply(m, 0) {
			t.Errorf("%q was taken", m.Key)
		}
	}
	if b.Skipped != 2 || b.Live(0)["shop/Service/a"] != 1 {
		t.Errorf("skipped %d, live %v", b.Skipped, b.Live(0))
	}
	b.Apply(bus.Message{Key: []byte("shop/a"), Appended: epoch.Add(time.Second)}, time.Second)
	if got := b.Live(time.Second); len(got) != 0 {
		t.Errorf("live %v after its tombstone", got)
	}
}

func TestSilentForAnHourIsForgotten(t *testing.T) {
	b := NewBook(7)
	b.Apply(heartbeat("shop/a", 0), 0)
	if got := b.Silent(59*time.Minute, 10); len(got) != 0 {
		t.Errorf("after 59 min: %v", got)
	}
	if got := b.Silent(61*time.Minute, 10); len(got) != 1 || got[0] != "shop/a" {
		t.Errorf("after 61 min: %v", got)
	}
}
