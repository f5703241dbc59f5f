package fleet

import (
	"time"

	"github.com/weirproxy/weir/internal/statustopic"
)

// promptly is how long the topic's end, once asked, is still about the end: what comes after it was appended a
// moment ago.
const promptly = 2 * time.Second

// hearing is whether sidecars are heard: a reader that was away, or has just begun, first gets what was said
// meanwhile, and who says nothing in that is not silent. Sidecars were away perhaps, too, and need a heartbeat
// to be back. Not safe for concurrent use.
type hearing struct {
	reason string        // why the topic cannot be read; "" where it can
	caught bool          // up with the topic's end, once
	again  bool          // it was away since
	live   bool          // what comes was appended a moment ago
	since  time.Duration // when reading began last, or met the last record of the past
	first  time.Duration // when the first record after it began came; 0: none yet
}

// begin: reading begins, or begins again.
func (h *hearing) begin(now time.Duration) {
	h.again = h.again || h.caught
	h.live, h.since, h.first = false, now, 0
}

// state: the topic cannot be read for this reason, or can be again.
func (h *hearing) state(reason string, now time.Duration) {
	h.reason = reason
	h.begin(now)
}

// record comes; it reports whether it was appended a moment ago.
func (h *hearing) record(now time.Duration) (live bool) {
	if !h.live {
		h.since = now
		if h.first == 0 {
			h.first = now
		}
	}
	return h.live
}

// caughtUp: all has come that was in the topic when reading began. It reports whether the end is met: where
// that took long, there is more by now, which is to be read like it.
func (h *hearing) caughtUp(now time.Duration) (end bool) {
	h.caught = true
	h.live = h.first == 0 || now-h.first <= promptly
	h.since, h.first = now, 0
	return h.live
}

// settled: every sidecar that runs was heard, or has had the time to be.
func (h *hearing) settled(now time.Duration) bool {
	return h.reason == "" && h.live && now-h.since > statustopic.Stale
}

// deaf says for people why silence tells nothing, "" where it does. alone: pods are known, and none was heard.
func (h *hearing) deaf(alone bool, now time.Duration) string {
	switch {
	case h.reason != "":
		return h.reason
	case !h.caught:
		return "the status topic is not yet read to its end"
	case h.settled(now):
		return ""
	case h.again:
		return "the status topic could not be read until a moment ago, and sidecars report each 10 s"
	case alone:
		return "no sidecar has been heard since the controller's start, and sidecars report each 10 s"
	}
	return ""
}
