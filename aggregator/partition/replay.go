package partition

import (
	"time"

	"github.com/weirproxy/weir/aggregator/store"
	"github.com/weirproxy/weir/internal/quota"
)

const (
	replayBack      = 10 * time.Second // before the stored offset: what pods reported last
	replayBackClean = 2 * time.Second  // after a clean handover
)

// ReplayFrom says from which append time a new owner reads usage again, given the record that it
// found. False: there is no record of this log, and it reads from the oldest retained.
func ReplayFrom(before store.Record, log store.LogID) (quota.Millis, bool) {
	if before.LogID != log || before.Offset < 0 {
		return 0, false
	}
	back := replayBack
	if before.Clean {
		back = replayBackClean
	}
	return quota.Millis(before.Appended) - quota.Millis(back/time.Millisecond), true
}
