package feed

import (
	"math"
	"time"

	"github.com/weirproxy/weir/internal/quota"
)

const (
	smallestWindow  = 60 * time.Second
	smallestBuckets = 12
	smallestBucket  = quota.Time(smallestWindow / smallestBuckets)
)

// Smallest is the smallest value observed in the last 60 s, to a twelfth of that. The zero value has
// observed none. Times must not go back. Not safe for concurrent use.
type Smallest struct {
	min    [smallestBuckets]int64
	bucket quota.Time // number of the newest bucket
	any    bool
}

// Observe takes in a value.
func (s *Smallest) Observe(value int64, now quota.Time) {
	s.advance(now / smallestBucket)
	newest := &s.min[s.bucket%smallestBuckets]
	*newest = min(*newest, value)
}

func (s *Smallest) advance(bucket quota.Time) {
	from := s.bucket + 1
	if !s.any || bucket-s.bucket >= smallestBuckets {
		from = bucket - smallestBuckets + 1
		s.any = true
	}
	for b := max(from, 0); b <= bucket; b++ {
		s.min[b%smallestBuckets] = math.MaxInt64
	}
	s.bucket = max(bucket, s.bucket)
}

// Value returns the smallest; ok is false if there is none. It does not look at the time: old values go
// as new ones come.
func (s *Smallest) Value() (v int64, ok bool) {
	if !s.any {
		return 0, false
	}
	v = s.min[0]
	for _, m := range s.min[1:] {
		v = min(v, m)
	}
	return v, true
}
