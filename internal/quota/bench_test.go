package quota

import (
	"testing"
)

func BenchmarkDecide(b *testing.B) {
	for _, n := range []int{1, 4} {
		b.Run(map[int]string{1: "one counter", 4: "four counters"}[n], func(b *testing.B) {
			takes, out := make([]Take, n), make([]Outcome, n)
			fs := make([]*fixture, n)
			for i := range fs {
				fs[i] = newFixture(perSecond(1e9), 10)
				fs[i].told(decision(fs[i].Rule(), 1e9, 1e8))
				takes[i] = fs[i].take(1)
			}
			rnd, now := NewRand(1), fs[0].now
			b.ReportAllocs()
			for b.Loop() {
				Decide(now, takes, &rnd, out)
				now += 20
				if now-fs[0].now > 100*ms {
					now = fs[0].now
				}
			}
		})
	}
}

func BenchmarkDecideParallel(b *testing.B) {
	f := newFixture(perSecond(1e9), 10)
	f.told(decision(f.Rule(), 1e9, 1e8))
	b.RunParallel(func(pb *testing.PB) {
		takes, out, rnd := [1]Take{f.take(1)}, [1]Outcome{}, NewRand(1)
		for pb.Next() {
			Decide(f.now, takes[:], &rnd, out[:])
		}
	})
}

func BenchmarkDecideCold(b *testing.B) {
	f := newFixture(perSecond(1e9), 1)
	takes, out, rnd := [1]Take{f.take(1)}, [1]Outcome{}, NewRand(1)
	for b.Loop() {
		Decide(f.now, takes[:], &rnd, out[:])
	}
}

func BenchmarkTotalIngest(b *testing.B) {
	total := NewTotal(perSecond(1e6), d0)
	u := Usage{Epoch: 1, Made: 1, Demand: 10, Span: 30 * 1e6, Appended: d0}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		u.Pod = uint64(i % 100)
		u.Cumulative = uint64(i)
		u.Offset = int64(i)
		u.Appended = d0 + Millis(i/4)
		total.Ingest(&u, true)
	}
}

func BenchmarkTotalTick(b *testing.B) {
	total := NewTotal(perSecond(1000), d0)
	for i := range 100 {
		total.Ingest(&Usage{Pod: uint64(i), Epoch: 1, Made: 1, Cumulative: 20, Demand: 20, Appended: d0}, true)
	}
	m := Moment{Now: d0, Pods: 100, Flush: flushing, Tick: ticking, Uplink: DefaultUplink}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		m.Now = d0 + Millis(i%100)
		total.Tick(&m)
	}
}
