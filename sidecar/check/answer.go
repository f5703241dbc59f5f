package check

import (
	"time"

	"github.com/weirproxy/weir/internal/policy"
	"github.com/weirproxy/weir/internal/quota"
	"github.com/weirproxy/weir/sidecar/metrics"
)

// Answer is what came of a check. Reset makes it ready for the next.
type Answer struct {
	Outcome metrics.Outcome
	// Limit is the one that refused, or the tightest one that passed, Policy its policy; nil if no limit
	// applied.
	Limit  *policy.Limit
	Policy *policy.Policy
	// Rate is that rate of Limit; nil if the client was refused as unknown.
	Rate *policy.Rate
	// Rule is the amount in force for this counter: an override's where one applies.
	Rule *quota.Rule
	// Remaining units of the whole quota, as far as this pod knows; 0 if refused.
	Remaining uint64
	// Reset is until the quota is whole again; RetryAfter until this request might pass.
	Reset, RetryAfter time.Duration
	// WouldRefuse is a shadow rate that would have refused; nil if none.
	WouldRefuse *policy.Rate
	// Random is for jitter.
	Random uint64
}

// Allow reports whether the request may pass.
func (a *Answer) Allow() bool {
	switch a.Outcome {
	case metrics.Allowed, metrics.NoPolicy, metrics.NoLimit, metrics.Uncounted:
		return true
	default:
		return false
	}
}

// Failed reports whether there is no answer: the caller's own failure mode applies.
func (a *Answer) Failed() bool {
	switch a.Outcome {
	case metrics.NotLoaded, metrics.Overloaded, metrics.Failed, metrics.Malformed:
		return true
	default:
		return false
	}
}
