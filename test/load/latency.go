package load

import (
	"math/bits"
	"time"
)

// Latency is a histogram of durations from 1 µs to about an hour, in buckets
// no wider than 1/16 of their value. The zero value is empty. It is not safe
// for concurrent use.
type Latency struct {
	// counts has 16 buckets for each power of two of microseconds; the first
	// 16 are a microsecond wide. It is only as long as the slowest needs.
	counts []int
	n      int
}

const perOctave = 16

func bucketOf(us uint64) int {
	if us < perOctave {
		return int(us)
	}
	octave := bits.Len64(us) - 5 // 16…31 µs: 0
	return octave*perOctave + int(us>>octave)
}

// topOf returns the greatest value of a bucket, in µs.
func topOf(bucket int) uint64 {
	if bucket < 2*perOctave {
		return uint64(bucket)
	}
	octave := bucket/perOctave - 1
	return uint64(bucket%perOctave+perOctave+1)<<octave - 1
}

func (l *Latency) add(d time.Duration) {
	b := bucketOf(uint64(max(0, d.Microseconds())))
	l.grow(b + 1)
	l.counts[b]++
	l.n++
}

func (l *Latency) merge(o *Latency) {
	l.grow(len(o.counts))
	for b, n := range o.counts {
		l.counts[b] += n
	}
	l.n += o.n
}

func (l *Latency) grow(n int) {
	if n > len(l.counts) {
		l.counts = append(l.counts, make([]int, n-len(l.counts))...)
	}
}

// Count returns how many durations were entered.
func (l *Latency) Count() int { return l.n }

// Quantile returns a duration that a share q of all entries, 0 < q ≤ 1, do not
// exceed, at most 1/16 too great. It is 0 if there are none.
func (l *Latency) Quantile(q float64) time.Duration {
	need, seen := q*float64(l.n), 0
	for b, n := range l.counts {
		seen += n
		if n > 0 && float64(seen) >= need {
			return time.Duration(topOf(b)) * time.Microsecond
		}
	}
	return 0
}
