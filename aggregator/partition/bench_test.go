package partition

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/weirproxy/weir/aggregator/store"
	wirev1 "github.com/weirproxy/weir/api/wire/v1"
)

// One update is one entry of a report: decoded, totalled, decided at each tick and flushed to a store in
// memory, batches encoded. The bar is 200,000 a second a core (DESIGN 8): 5 µs.
func BenchmarkUpdates(b *testing.B) {
	for _, shape := range []struct{ counters, pods int }{{100, 20}, {5000, 20}, {50000, 20}} {
		b.Run(fmt.Sprintf("counters=%d/pods=%d", shape.counters, shape.pods), func(b *testing.B) {
			benchmarkUpdates(b, shape.counters, shape.pods)
		})
	}
}

func benchmarkUpdates(b *testing.B, counters, pods int) {
	const perReport = 100
	w := newWorld(b)
	w.claim()
	w.read(1)
	w.advance(2 * time.Minute) // the takeover is over
	ids := make([][]byte, counters)
	for i := range ids {
		ids[i] = identityOf(fmt.Sprint("client-", i), time.Second)
	}
	reports := make([]*wirev1.UsageReport, pods)
	cums := make([]uint64, counters)
	for i := range reports {
		reports[i] = &wirev1.UsageReport{KeyFingerprint: w.keys.Fingerprint(), Pod: fmt.Sprint("shop/", i), PodEpoch: uint64(i), LogId: w.logID[:]}
	}
	entries := make([]*wirev1.UsageEntry, counters)
	for i := range entries {
		id := w.keys.ID(ids[i])
		entries[i] = &wirev1.UsageEntry{IdHi: id.Hi, IdLo: id.Lo, Made: 1, Identity: ids[i]}
	}
	next, offset, updates := 0, int64(0), 0
	batch := func(text bool) []byte {
		r := reports[next/perReport%pods]
		r.Sequence++
		tu := &wirev1.TargetUsage{Target: testTarget}
		for range perReport {
			i := next % counters
			next++
			e := entries[i]
			cums[i] += 2
			e.Cumulative, e.Base, e.Demand, e.SpanMs = cums[i], cums[i]-2, 40, 50
			if !text {
				e.Identity = nil
			}
			tu.Entries = append(tu.Entries, e)
		}
		r.Targets = []*wirev1.TargetUsage{tu}
		v, err := proto.Marshal(&wirev1.UsageMessage{Body: &wirev1.UsageMessage_Report{Report: r}})
		if err != nil {
			b.Fatal(err)
		}
		return v
	}
	step := func(v []byte, d time.Duration) {
		offset++
		w.advance(d)
		w.own.Read(offset, w.clock(), v, w.now)
		w.load()
		if w.now >= w.own.NextFlush() {
			if f := w.own.Flush(w.now, false); f != nil {
				w.own.Flushed(store.Discard(f), w.now)
			}
		}
		if d := w.own.Tick(w.now); d != nil {
			if _, err := proto.Marshal(d); err != nil {
				b.Fatal(err)
			}
			w.own.Sent(true, 2*time.Millisecond, w.now)
		}
	}
	for range (counters + perReport - 1) / perReport {
		step(batch(true), time.Millisecond)
	}
	for range 3000 { // 1.5 s: a full window
		step(batch(false), 500*time.Microsecond)
	}
	values := make([][]byte, 1000)
	b.ReportAllocs()
	var spent time.Duration
	began := cpuTime()
	for b.Loop() {
		if at := updates / perReport % len(values); at == 0 { // making reports is the pods' work
			b.StopTimer()
			spent += cpuTime() - began
			for i := range values {
				values[i] = batch(false)
			}
			began = cpuTime()
			b.StartTimer()
		}
		// 200,000 updates a second: a report of 100 each 0.5 ms.
		step(values[updates/perReport%len(values)], 500*time.Microsecond)
		updates += perReport
	}
	spent += cpuTime() - began
	b.ReportMetric(float64(updates)/spent.Seconds(), "updates/cpu-s")
}

// cpuTime is what the process has used, so that neighbours on the machine do not count.
func cpuTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
