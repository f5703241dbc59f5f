package fleet

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/internal/bus"
)

// heartbeats are those of a namespace with 20 policies.
func heartbeats(b *testing.B, pods int) []bus.Message {
	b.Helper()
	out := make([]bus.Message, pods)
	for i := range out {
		s := &wirev1.PodStatus{Pod: fmt.Sprintf("shop/orders-6d5f9c7b8-%05d", i), PodEpoch: 1, Targets: []string{"shop/Service/orders"}, Ready: true, KeyFingerprint: key}
		for n := range 20 {
			s.Policies = append(s.Policies, &wirev1.AppliedPolicy{Key: fmt.Sprintf("kube/shop/policy-%02d", n), Version: int64(n), Seen: int64(n), Generation: 1})
		}
		value, err := proto.Marshal(s)
		if err != nil {
			b.Fatal(err)
		}
		out[i] = bus.Message{Key: []byte(s.Pod), Value: value, Appended: began()}
	}
	return out
}

// One heartbeat of a pod with 20 policies, which says nothing new; a pod sends one each 10 s.
func BenchmarkHeartbeat(b *testing.B) {
	book, beats := newBook(), heartbeats(b, 1000)
	for i := 0; b.Loop(); i++ {
		m := beats[i%len(beats)]
		m.Appended = began().Add(time.Duration(i))
		if _, err := book.read(m, true, 0); err != nil {
			b.Fatal(err)
		}
	}
}

// What a pod with 20 policies costs while it is mirrored.
func BenchmarkMirrorOf10000Pods(b *testing.B) {
	beats := heartbeats(b, 10_000)
	var before, after runtime.MemStats
	for b.Loop() {
		runtime.GC()
		runtime.ReadMemStats(&before)
		book := newBook()
		for i := range beats {
			if _, err := book.read(beats[i], true, 0); err != nil {
				b.Fatal(err)
			}
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		runtime.KeepAlive(book)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(len(beats)), "B/pod")
	}
}
