package v1alpha1

// ClientSource is one way to tell who is calling.
// +kubebuilder:validation:XValidation:rule="(self.source in ['Header', 'JWTClaim']) == (has(self.name) && self.name != \"\")",message="name is needed for Header and JWTClaim, and is for these only"
// +kubebuilder:validation:XValidation:rule="self.source != 'Header' || !has(self.name) || self.name.matches(r'^[-A-Za-z0-9!#$%&*+.^_|~\\x27\\x60]{0,128}$')",message="name is no header's name: use letters, digits and '-', at most 128"
// +kubebuilder:validation:XValidation:rule="self.source == 'Header' || (!has(self.pick) && !(has(self.reveal) && self.reveal))",message="reveal and pick are for Header only"
// +kubebuilder:validation:XValidation:rule="self.source == 'RemoteAddress' || (!has(self.ipv4Prefix) && !has(self.ipv6Prefix) && !(has(self.trustedHops) && self.trustedHops != 0))",message="ipv4Prefix, ipv6Prefix and trustedHops are for RemoteAddress only"
type ClientSource struct {
	// Source: Principal (identity of the mTLS peer, such as its SPIFFE id), JWTClaim (from Envoy's
	// jwt_authn metadata), Header, or RemoteAddress.
	Source SourceKind `json:"source"`
	// Name of the claim or of the header. Needed for JWTClaim and Header, else absent. Header names
	// are the same in any case.
	// +kubebuilder:validation:MaxLength=256
	Name string `json:"name,omitempty"`
	// Reveal lets a header's value leave the pod as it is. By default it is taken for a secret and
	// leaves the pod only as a keyed hash. Header only.
	Reveal bool `json:"reveal,omitempty"`
	// Pick says which value of a repeated header counts: First, Last, or All (joined by commas, as
	// Envoy joins them). Values are what commas separate, wherever the header was split. Header
	// only. Default: All.
	Pick Pick `json:"pick,omitempty"`
	// IPv4Prefix is how many leading bits of an IPv4 address make a client, 1 to 32. RemoteAddress only. Default: 32.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=32
	IPv4Prefix *int32 `json:"ipv4Prefix,omitempty"`
	// IPv6Prefix is how many leading bits of an IPv6 address make a client, 1 to 128. RemoteAddress
	// only. Default: 64, what one customer usually has.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=128
	IPv6Prefix *int32 `json:"ipv6Prefix,omitempty"`
	// TrustedHops is the number of trusted proxies in front of this one that each append to
	// X-Forwarded-For: the client is that many entries from its right end. 0: the address of the
	// peer, and the header is not looked at. With fewer entries than that, the peer.
	// RemoteAddress only. At most 16. Default: 0.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=16
	TrustedHops int32 `json:"trustedHops,omitempty"`
}

// SourceKind is where a client's identity is taken from.
// +kubebuilder:validation:Enum=Principal;JWTClaim;Header;RemoteAddress
type SourceKind string

// The sources.
const (
	SourcePrincipal     SourceKind = "Principal"
	SourceJWTClaim      SourceKind = "JWTClaim"
	SourceHeader        SourceKind = "Header"
	SourceRemoteAddress SourceKind = "RemoteAddress"
)

// Pick chooses among a repeated header's values.
// +kubebuilder:validation:Enum=First;Last;All
type Pick string

// The picks.
const (
	PickFirst Pick = "First"
	PickLast  Pick = "Last"
	PickAll   Pick = "All"
)
