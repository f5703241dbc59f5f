package policy

import (
	"net/netip"

	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/internal/quota"
)

// Key names a policy: origin ("kube", "file" or "cli"), namespace and name. Its text,
// "origin/namespace/name", is the record key in weir.policies.
type Key struct{ Origin, Namespace, Name string }

// Policy is one compiled document: immutable, safe for concurrent use. Version is its offset in
// weir.policies. Generation is metadata.generation of the object it was made from, 0 where there is none.
type Policy struct {
	Key        Key
	Version    int64
	Generation int64
	// Name is "namespace/name", as identities carry it.
	Name string
	// Targets are canonical names, namespace/kind/name, with the pod labels that select them where
	// the publisher resolved any.
	Targets []Target
	Limits  []*Limit
	// Exclude, Client, UnknownClients, Failure, Response: compiled forms of the spec's fields.
	Client         []ClientSource
	UnknownClients UnknownClients
	Exclude        Exclude
	Response       Response
	// SourceHops is TrustedHops of the RemoteAddress source, for sourceCIDRs; 0 without one.
	SourceHops int
}

// Target is a policy's target. Selector nil: matched by name only.
type Target struct {
	Name     string
	Selector map[string]string
}

// SourceKind is a client source.
type SourceKind uint8

// The client sources.
const (
	SourcePrincipal SourceKind = 1 + iota
	SourceJWTClaim
	SourceHeader
	SourceRemoteAddress
)

// ClientSource is one source of the client's identity. Name: the claim, or the header in lower
// case. Secret values (a header's, unless revealed) leave the pod as keyed hashes only.
type ClientSource struct {
	Kind        SourceKind
	Name        string
	Reveal      bool
	IPv4Prefix  int
	IPv6Prefix  int
	TrustedHops int
	// Pick says which of a repeated header's values counts.
	Pick Pick
}

// Pick chooses among a repeated header's values.
type Pick uint8

// The picks; the zero value takes all, joined by commas as Envoy does.
const (
	PickAll Pick = iota
	PickFirst
	PickLast
)

// UnknownClients says what happens to a request that yields no client.
type UnknownClients uint8

// What happens to unknown clients; the zero value is the default.
const (
	UnknownShared UnknownClients = iota
	UnknownRefuse
	UnknownExempt
)

// Exclude is the set of presets that are neither charged nor refused.
type Exclude struct{ CORSPreflight, HealthCheck bool }

// HeaderStyle says which rate-limit headers an answer carries.
type HeaderStyle uint8

// The header styles; the zero value is the default.
const (
	HeadersIETF HeaderStyle = iota
	HeadersXRateLimit
	HeadersNone
)

// Response is how refusals (and, by Headers, allowed answers) look.
type Response struct {
	Headers HeaderStyle
	Status  int
	// CORS: the refusal carries Access-Control-Allow-Origin and Access-Control-Expose-Headers, so that a browser may read it.
	CORS bool
}

// Mode of a limit.
type Mode uint8

// The modes; the zero value is the default.
const (
	Enforce Mode = iota
	Shadow
	Off
)

// DimensionKind is one of a limit's `counters`.
type DimensionKind uint8

// The counters' dimensions.
const (
	ByClient DimensionKind = 1 + iota
	ByEndpoint
	ByMethod
	ByHost
	ByHeader
)

// Dimension is one of a limit's counters. Name and Reveal: ByHeader only.
type Dimension struct {
	Kind   DimensionKind
	Name   string
	Reveal bool
	Pick   Pick
}

// Limit is one compiled limit.
type Limit struct {
	Policy         *Policy
	Index          int // in Policy.Limits
	Name           string
	When           *Condition // nil: every request
	Dimensions     []Dimension
	Rates          []*Rate
	Overrides      []*Override
	Mode           Mode
	EnforcePercent float64 // 0..100
	Cost           Cost

	overrides overrideIndex
}

// Rate is one rate of a limit with its rule. Title is for people and headers, e.g. "100/1s".
type Rate struct {
	Limit *Limit
	Index int // in Limit.Rates
	Rule  *quota.Rule
	Title string
	// Identity is everything but target and dimensions.
	Identity wirev1.Identity
}

// Override replaces a limit's rates for some clients. Rates are in the order of the limit's own;
// nil where the override has no counterpart: that rate does not apply to these clients.
type Override struct {
	Clients   []ClientMatch
	Unlimited bool
	Rates     []*Rate
}

// ClientMatch is one client of an override: a source and a value of it. Value is in the form an
// identity carries (a hash for secret sources); Prefix for RemoteAddress.
type ClientMatch struct {
	Kind   SourceKind
	Name   string
	Value  string
	Hashed bool
	Prefix netip.Prefix
}

// Cost is what a request charges. Header "" : Default. A value that is no whole number within
// 0..Max charges Default (missing, malformed) or Max (above it).
type Cost struct {
	Header       string
	Default, Max uint64
}
