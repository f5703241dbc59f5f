package feed

import (
	"time"

	"github.com/weirproxy/weir/internal/quota"
)

// delay relates the broker's clock to the pod's: the smallest difference between a receipt and its
// append time over the last 60 s. The clocks' zeros differ, so only differences of delays mean
// anything; what a receipt exceeds the smallest by is the time it was late.
type delay struct{ smallest Smallest }

func (d *delay) observe(appended quota.Millis, now quota.Time) {
	d.smallest.Observe(int64(now-fromMillis(appended)), now)
}

// received is when a record appended at that time would have been received with the smallest delay.
func (d *delay) received(appended quota.Millis) quota.Time {
	least, _ := d.smallest.Value()
	return fromMillis(appended) + quota.Time(least)
}

func fromMillis(ms quota.Millis) quota.Time { return quota.Time(ms) * quota.Time(time.Millisecond) }
