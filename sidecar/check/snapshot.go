package check

import (
	"sync/atomic"

	"github.com/weirproxy/weir/internal/policy"
	"github.com/weirproxy/weir/internal/quota"
	"github.com/weirproxy/weir/sidecar/match"
	"github.com/weirproxy/weir/sidecar/metrics"
)

// Snapshot is what checks decide by. It is immutable but for Target.Overflow; a change of policies
// installs another one.
type Snapshot struct {
	Matcher *match.Matcher
	// Targets holds every target of the matcher, by canonical name.
	Targets map[string]*Target
	// Limits holds the counters of every limit that the matcher may hit.
	Limits map[*policy.Limit]*metrics.LimitCounters
	// Names holds their names (LimitName), so that a new counter makes none of its own.
	Names map[*policy.Limit]string
	// Policies are those that the matcher may decide by.
	Policies []*policy.Policy
}

// Reads is what decisions by the snapshot look at in a request.
func (s *Snapshot) Reads() policy.Reads { return policy.ReadsOf(s.Policies) }

// Target is what checks need of one target. It outlives snapshots, so that a change of policies
// loses neither freshness nor the number of pods.
type Target struct {
	Name      string
	Partition int32
	// Fresh is the partition's, Fleet the target's own. The control goroutine writes them.
	Fresh *quota.Fresh
	Fleet *quota.Fleet

	overflow atomic.Pointer[map[string]struct{}]
}

// SetOverflow replaces the limits in overflow at the owner, named "policy namespace/policy name/limit".
func (t *Target) SetOverflow(limits []string) {
	if len(limits) == 0 {
		t.overflow.Store(nil)
		return
	}
	set := make(map[string]struct{}, len(limits))
	for _, l := range limits {
		set[l] = struct{}{}
	}
	t.overflow.Store(&set)
}

// Overflows reports whether new keys of a limit share its overflow counter.
func (t *Target) Overflows(limit string) bool {
	set := t.overflow.Load()
	if set == nil {
		return false
	}
	_, ok := (*set)[limit]
	return ok
}

// LimitName is a limit's name in headers and in the ledger: policy namespace/policy name/limit.
func LimitName(l *policy.Limit) string { return l.Policy.Name + "/" + l.Name }
