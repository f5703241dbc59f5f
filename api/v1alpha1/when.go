package v1alpha1

// When says which requests a limit concerns: all of its fields must hold, of a list any item
// (of Headers: every item).
type When struct {
	// Methods, such as GET.
	// +kubebuilder:validation:MaxItems=64
	Methods []string `json:"methods,omitempty"`
	// Paths are matched against the path without query, normalised: dot segments and repeated slashes
	// removed, escapes decoded, path parameters (";...") dropped. Where several match, the most
	// specific one is the request's Endpoint: segment by segment a literal goes before {name}, that before the rest of
	// the path; then regular expressions as written.
	// +kubebuilder:validation:MaxItems=64
	Paths []PathMatch `json:"paths,omitempty"`
	// Headers must all match.
	// +kubebuilder:validation:MaxItems=64
	Headers []HeaderMatch `json:"headers,omitempty"`
	// Hosts: exact, or *.example.com for every host below example.com. Ports are not looked at.
	// +kubebuilder:validation:MaxItems=64
	Hosts []string `json:"hosts,omitempty"`
	// SourceCIDRs are prefixes or addresses of the caller, found as the RemoteAddress source of
	// spec.client says; without one, of the peer.
	// +kubebuilder:validation:MaxItems=64
	SourceCIDRs []string `json:"sourceCIDRs,omitempty"`
}

// PathMatch is a pattern for paths.
type PathMatch struct {
	// Type: Exact; Prefix (whole segments: /a matches /a and /a/b, not /ab); Template (/orders/{id}: a
	// name in braces stands for one segment, {name=**} at the end for all that remain, also none); RegularExpression
	// (RE2, for the whole path). A trailing slash makes no difference, but to RegularExpression. Default: Exact.
	Type PathMatchType `json:"type,omitempty"`
	// Value is the pattern.
	Value string `json:"value"`
}

// PathMatchType is how a path's pattern is read.
// +kubebuilder:validation:Enum=Exact;Prefix;Template;RegularExpression
type PathMatchType string

// The types of path patterns.
const (
	PathExact             PathMatchType = "Exact"
	PathPrefix            PathMatchType = "Prefix"
	PathTemplate          PathMatchType = "Template"
	PathRegularExpression PathMatchType = "RegularExpression"
)

// HeaderMatch is a condition on one header. Repeated headers are looked at joined by commas.
type HeaderMatch struct {
	// Name of the header, the same in any case.
	Name string `json:"name"`
	// Type: Exact, Prefix, RegularExpression (RE2, for the whole value) or Present. Default: Exact.
	Type HeaderMatchType `json:"type,omitempty"`
	// Value, for every type but Present.
	Value string `json:"value,omitempty"`
	// Invert: the condition must not hold. It holds not where the header is missing.
	Invert bool `json:"invert,omitempty"`
}

// HeaderMatchType is how a header is compared.
// +kubebuilder:validation:Enum=Exact;Prefix;RegularExpression;Present
type HeaderMatchType string

// The types of header conditions.
const (
	HeaderExact             HeaderMatchType = "Exact"
	HeaderPrefix            HeaderMatchType = "Prefix"
	HeaderRegularExpression HeaderMatchType = "RegularExpression"
	HeaderPresent           HeaderMatchType = "Present"
)
