package policy

import (
	"slices"

	"github.com/weirproxy/weir/internal/quota"
)

// FailsClosed reports whether some policy would rather refuse than admit uncounted: a limit that is enforced, with
// failure mode Deny. What asks the sidecar then refuses as well while the sidecar itself is away.
func FailsClosed(policies []*Policy) bool {
	return slices.ContainsFunc(policies, func(p *Policy) bool {
		return slices.ContainsFunc(p.Limits, (*Limit).failsClosed)
	})
}

func (l *Limit) failsClosed() bool {
	return l.Mode == Enforce && slices.ContainsFunc(l.Rates, func(r *Rate) bool { return r.Rule.Failure == quota.FailDeny })
}
