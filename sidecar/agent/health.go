package agent

import (
	"slices"
	"sync/atomic"
)

// Reason is why the sidecar is not ready, or degraded although it is. Code is one of a few words, a
// metric's label; Text says it to a person, with what to do where there is something to do.
type Reason struct{ Code, Text string }

// The codes.
const (
	ReasonKafka        = "kafka"
	ReasonPolicies     = "policies"     // not read to their end once
	ReasonPolicyTopic  = "policy_topic" // cannot be read now
	ReasonInstallation = "installation"
	ReasonDecisions    = "decisions"
	ReasonLivePods     = "live_pods"
	ReasonRefused      = "policies_refused"
	ReasonConflict     = "policies_conflict"
	ReasonNoPolicy     = "no_policy"
	ReasonStateFile    = "state_file"
	ReasonUsage        = "usage_topic"
	ReasonReports      = "reports"
	ReasonStrict       = "strict_unavailable"
)

// waits are the codes that keep a sidecar from being ready until the start-up grace has passed; the
// others only degrade it.
func waits(code string) bool {
	switch code {
	case ReasonKafka, ReasonPolicies, ReasonInstallation, ReasonDecisions:
		return true
	default:
		return false
	}
}

// State is what probes and the status record say. It is immutable.
type State struct {
	// Started: the check server listens. Ready: policies and decisions are applied, or the start-up
	// grace has passed. Degraded: there are reasons.
	Started, Ready, Degraded bool
	Reasons                  []Reason
}

// Texts returns the reasons for a person.
func (s State) Texts() []string {
	out := make([]string, len(s.Reasons))
	for i, r := range s.Reasons {
		out[i] = r.Text
	}
	return out
}

func (s State) codes() []string {
	var out []string
	for _, r := range s.Reasons {
		if !slices.Contains(out, r.Code) {
			out = append(out, r.Code)
		}
	}
	return out
}

// health holds the newest State for any reader. Once ready, a sidecar stays ready: it answers from
// what it has, and taking it out of service would help nobody.
type health struct {
	started atomic.Bool
	state   atomic.Pointer[State]
}

func (h *health) get() State {
	s := State{}
	if p := h.state.Load(); p != nil {
		s = *p
	}
	s.Started = h.started.Load()
	return s
}

// set takes the reasons now in force; graced: the start-up grace has passed. It reports whether the
// codes or readiness changed.
func (h *health) set(reasons []Reason, graced bool) bool {
	old := h.get()
	blocked := slices.ContainsFunc(reasons, func(r Reason) bool { return waits(r.Code) })
	next := &State{Ready: old.Ready || graced || !blocked, Degraded: len(reasons) > 0, Reasons: reasons}
	h.state.Store(next)
	return next.Ready != old.Ready || !slices.Equal(next.codes(), old.codes())
}
