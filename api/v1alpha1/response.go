package v1alpha1

// Failure says what a pod does with the policy's counters while it hears nothing of their owner.
type Failure struct {
	// Mode: LocalShare (the pod goes on within its last share), Allow, or Deny. Default: LocalShare.
	// +kubebuilder:default=LocalShare
	Mode FailureMode `json:"mode,omitempty"`
	// StaleAfter is how long the owner may be silent before that, 200ms to 1h. Default: 500ms.
	// +kubebuilder:default="500ms"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('200ms') && duration(self) <= duration('1h')",message="staleAfter is out of range: want 200ms to 1h"
	StaleAfter *Duration `json:"staleAfter,omitempty"`
	// FallbackFloor is the least share of a pod under LocalShare, as a part (0 to 1) of an even share:
	// higher favours pods that traffic moved to, lower keeps the total. Default: 0.5.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1
	FallbackFloor *float64 `json:"fallbackFloor,omitempty"`
}

// FailureMode is what a pod does without its owner.
// +kubebuilder:validation:Enum=LocalShare;Allow;Deny
type FailureMode string

// The failure modes.
const (
	FailLocalShare FailureMode = "LocalShare"
	FailAllow      FailureMode = "Allow"
	FailDeny       FailureMode = "Deny"
)

// Response says what answers look like.
type Response struct {
	// Headers: IETF (RateLimit and RateLimit-Policy), XRateLimit (X-RateLimit-Limit, -Remaining,
	// -Reset) or None. Default: IETF.
	// +kubebuilder:default=IETF
	Headers HeaderStyle `json:"headers,omitempty"`
	// Status of a refusal, 400 to 599. Default: 429.
	// +kubebuilder:validation:Minimum=400
	// +kubebuilder:validation:Maximum=599
	// +kubebuilder:default=429
	Status *int32 `json:"status,omitempty"`
	// CORS lets a browser's script read the refusal: it carries the Access-Control headers for the
	// request's Origin. Default: false.
	CORS bool `json:"cors,omitempty"`
}

// HeaderStyle says which rate-limit headers an answer carries.
// +kubebuilder:validation:Enum=IETF;XRateLimit;None
type HeaderStyle string

// The header styles.
const (
	HeadersIETF       HeaderStyle = "IETF"
	HeadersXRateLimit HeaderStyle = "XRateLimit"
	HeadersNone       HeaderStyle = "None"
)
