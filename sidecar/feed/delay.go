package feed

import (
	"math"
	"time"

	"github.com/weirproxy/weir/internal/quota"
)

// delayWindow is how long the smallest delay is remembered, in delayBuckets parts.
const (
	delayWindow  = 60 * time.Second
	delayBuckets = 12
	delayBucket  = quota.Time(delayWindow / delayBuckets)
)

// delay relates the broker's clock to the pod's: the smallest difference between a receipt and its
// append time over the last 60 s. The clocks' zeros differ, so only differences of delays mean
// anything; what a receipt exceeds the smallest by is the time it was late.
type delay struct {
	min    [delayBuckets]quota.Time // receipt - append, ns
	bucket quota.Time               // number of the newest bucket
	any    bool
}

func (d *delay) observe(appended quota.Millis, now quota.Time) {
	bucket := now / delayBucket
	if !d.any || bucket-d.bucket >= delayBuckets {
		d.fill()
	} else {
		for b := d.bucket + 1; b <= bucket; b++ {
			d.min[b%delayBuckets] = math.MaxInt64
		}
	}
	d.bucket, d.any = max(bucket, d.bucket), true
	slot := &d.min[d.bucket%delayBuckets]
	*slot = min(*slot, now-fromMillis(appended))
}

func (d *delay) fill() {
	for i := range d.min {
		d.min[i] = math.MaxInt64
	}
	d.bucket = 0
}

// received is when a record appended at that time would have been received with the smallest delay.
func (d *delay) received(appended quota.Millis) quota.Time {
	if !d.any {
		return 0
	}
	least := d.min[0]
	for _, m := range d.min[1:] {
		least = min(least, m)
	}
	return fromMillis(appended) + least
}

func fromMillis(ms quota.Millis) quota.Time { return quota.Time(ms) * quota.Time(time.Millisecond) }
