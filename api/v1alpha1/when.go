package v1alpha1

// When says which requests a limit concerns: all of its fields must hold, of a list any item
// (of Headers: every item).
type When struct {
	// Methods, such as GET.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=32
	// +kubebuilder:validation:items:Pattern=`^[-A-Za-z0-9!#$%&*+.^_|~\x27\x60]+$`
	// +kubebuilder:validation:XValidation:rule="self.all(m, m == m.upperAscii() || !(m.upperAscii() in ['GET', 'POST', 'PUT', 'DELETE', 'PATCH', 'HEAD', 'OPTIONS', 'CONNECT', 'TRACE']))",message="methods are told apart by case: write standard methods in capitals, such as GET"
	Methods []string `json:"methods,omitempty"`
	// Paths are matched against the path without query, normalised: dot segments and repeated slashes
	// removed, escapes decoded, path parameters (";...") dropped. Where several match, the most
	// specific one is the request's Endpoint: segment by segment a literal goes before {name}, that before the rest of
	// the path; then regular expressions as written.
	// +listType=map
	// +listMapKey=type
	// +listMapKey=value
	// +kubebuilder:validation:MaxItems=64
	Paths []PathMatch `json:"paths,omitempty"`
	// Headers must all match.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Headers []HeaderMatch `json:"headers,omitempty"`
	// Hosts: exact, or *.example.com for every host below example.com. Ports are not looked at.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=255
	// +kubebuilder:validation:items:Pattern=`^((\*\.)?[A-Za-z0-9]([-A-Za-z0-9]{0,61}[A-Za-z0-9])?(\.[A-Za-z0-9]([-A-Za-z0-9]{0,61}[A-Za-z0-9])?)*|\[.*)$`
	Hosts []string `json:"hosts,omitempty"`
	// SourceCIDRs are prefixes or addresses of the caller, found as the RemoteAddress source of
	// spec.client says; without one, of the peer.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.all(c, isIP(c) || isCIDR(c))",message="want an address or a prefix such as 10.0.0.0/8"
	SourceCIDRs []string `json:"sourceCIDRs,omitempty"`
}

// PathMatch is a pattern for paths.
// +kubebuilder:validation:XValidation:rule="self.type == 'RegularExpression' || self.value.startsWith('/')",message="a path begins with a slash"
// +kubebuilder:validation:XValidation:rule="self.type == 'RegularExpression' || !(self.value.contains('?') || self.value.contains(';'))",message="query and path parameters are removed before matching: leave out what follows '?' or ';'"
// +kubebuilder:validation:XValidation:rule="self.type == 'RegularExpression' || !(self.value.contains('//') || (self.value + '/').contains('/./') || (self.value + '/').contains('/../'))",message="paths are normalised before matching: write it without empty and dot segments"
// +kubebuilder:validation:XValidation:rule="self.type in ['Template', 'RegularExpression'] || !(self.value.contains('{') || self.value.contains('}'))",message="braces stand for themselves here: set type to Template, or write them as %7B and %7D"
type PathMatch struct {
	// Type: Exact; Prefix (whole segments: /a matches /a and /a/b, not /ab); Template (/orders/{id}: a
	// name in braces stands for one segment, {name=**} at the end for all that remain, also none); RegularExpression
	// (RE2, for the whole path). A trailing slash makes no difference, but to RegularExpression. Default: Exact.
	// +kubebuilder:default=Exact
	Type PathMatchType `json:"type,omitempty"`
	// Value is the pattern.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=223
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
// +kubebuilder:validation:XValidation:rule="self.type != 'Present' || !has(self.value) || self.value == \"\"",message="value is not for Present: remove it, or set another type"
// +kubebuilder:validation:XValidation:rule="self.type in ['Exact', 'Present'] || (has(self.value) && self.value != \"\")",message="value is missing: give it, or set type to Present"
type HeaderMatch struct {
	// Name of the header, the same in any case.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^[-A-Za-z0-9!#$%&*+.^_|~\x27\x60]+$`
	Name string `json:"name"`
	// Type: Exact, Prefix, RegularExpression (RE2, for the whole value) or Present. Default: Exact.
	// +kubebuilder:default=Exact
	Type HeaderMatchType `json:"type,omitempty"`
	// Value, for every type but Present.
	// +kubebuilder:validation:MaxLength=1024
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
