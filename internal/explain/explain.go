// Package explain is what `POST /debug/explain` of a sidecar takes and gives: JSON that `weir explain`
// sends and prints. Explaining charges nothing and makes no counter.
package explain

// Path is where a sidecar explains.
const Path = "/debug/explain"

// Request is a request to explain as a check would carry it.
type Request struct {
	Method string `json:"method"`
	// Path with its query, as Envoy would send it. Default: /.
	Path string `json:"path"`
	Host string `json:"host,omitempty"`
	// Headers: names in any case; several values of one are joined by commas.
	Headers map[string][]string `json:"headers,omitempty"`
	// RemoteAddress is the peer's IP address, Principal its SPIFFE id.
	RemoteAddress string `json:"remoteAddress,omitempty"`
	Principal     string `json:"principal,omitempty"`
	// Claims are a verified token's.
	Claims map[string]string `json:"claims,omitempty"`
	// Target stands for context_extensions["weir.target"]. Empty: the pod's own targets.
	Target string `json:"target,omitempty"`
}

// Response says what a check would answer now, and why.
type Response struct {
	// Outcome as the metric weir_sidecar_checks_total names it: allowed, refused, no_policy and so on.
	Outcome string `json:"outcome"`
	Allowed bool   `json:"allowed"`
	// Status of a refusal; 0 where it is allowed.
	Status int `json:"status,omitempty"`
	// RefusedBy is the limit that would refuse, "policy namespace/policy name/limit".
	RefusedBy string `json:"refusedBy,omitempty"`
	// Targets are those the request would be charged to.
	Targets []string `json:"targets"`
	// Counters are those of every limit that applies, in the policies' order.
	Counters []Counter `json:"counters"`
	// Degraded are the reasons why this sidecar decides with less than it should know.
	Degraded []string `json:"degraded,omitempty"`
}

// Counter is one counter of a request.
type Counter struct {
	Target string `json:"target"`
	Policy string `json:"policy"`
	// PolicyVersion in force on this pod.
	PolicyVersion int64  `json:"policyVersion"`
	Limit         string `json:"limit"`
	// Rate in words, 100/1s; an override's where one applies.
	Rate string `json:"rate"`
	// Mode: Enforce, Shadow.
	Mode string `json:"mode"`
	// ID of the counter, and what it counts by in words, secrets masked.
	ID        string   `json:"id"`
	CountedBy []string `json:"countedBy,omitempty"`
	// Overflow: it would be charged to the limit's overflow counter.
	Overflow bool `json:"overflow,omitempty"`
	// Cost of this request, units.
	Cost float64 `json:"cost"`
	// OK: this rate alone would let it pass.
	OK bool `json:"ok"`
	// Basis of the decision: Cold, Decision, Fallback or FailureMode.
	Basis string `json:"basis"`
	// Amount is the limit (bucket: burst), Total what the window holds over all pods as far as this pod knows,
	// Remaining what is left of the whole, Share the part of it that this pod may take (0..1). Units.
	Amount    float64  `json:"amount"`
	Total     *float64 `json:"total,omitempty"`
	Remaining float64  `json:"remaining"`
	Share     *float64 `json:"share,omitempty"`
	// DecisionAgeMS is the age of the newest header that covers the decision in force; absent: none.
	DecisionAgeMS *float64 `json:"decisionAgeMs,omitempty"`
	// RetryAfterMS until it might pass, if it would not; ResetMS until the quota is whole again.
	RetryAfterMS float64 `json:"retryAfterMs,omitempty"`
	ResetMS      float64 `json:"resetMs,omitempty"`
}
