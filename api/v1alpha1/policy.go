package v1alpha1

// The group, version and kind of the document.
const (
	Group      = "weirproxy.dev"
	Version    = "v1alpha1"
	APIVersion = Group + "/" + Version
	Kind       = "QuotaPolicy"
)

// QuotaPolicy holds the quotas of one or more targets. A request to a target passes if every
// enforced rate of every limit that applies to it passes; a refused request charges nothing.
type QuotaPolicy struct {
	// APIVersion is weirproxy.dev/v1alpha1.
	APIVersion string `json:"apiVersion"`
	// Kind is QuotaPolicy.
	Kind string `json:"kind"`
	// Metadata names the policy.
	Metadata Metadata `json:"metadata"`
	// Spec says who is counted and how much they may use.
	Spec QuotaPolicySpec `json:"spec"`
}

// Metadata names a policy.
type Metadata struct {
	// Name of the policy, unique in its namespace: lower-case letters, digits, '-' and '.'.
	Name string `json:"name"`
	// Namespace of the policy and of its targets. Default: default.
	Namespace string `json:"namespace,omitempty"`
	// Labels are accepted and not used.
	Labels map[string]string `json:"labels,omitempty"`
	// Annotations are accepted and not used.
	Annotations map[string]string `json:"annotations,omitempty"`
}

// QuotaPolicySpec says whose requests are counted, who is calling, and what they may use.
// +kubebuilder:validation:XValidation:rule="!self.limits.exists(l, has(l.counters) && 'Client' in l.counters) || (has(self.client) && size(self.client) > 0)",message="a limit counts by Client, but spec.client names no source: say in spec.client how to tell who is calling"
type QuotaPolicySpec struct {
	// TargetRefs name what the policy attaches to: the requests of these are counted, each target's
	// apart. They are in the policy's own namespace.
	// +listType=map
	// +listMapKey=kind
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	TargetRefs []TargetRef `json:"targetRefs"`
	// Client says who is calling: the first source that yields a value. Name authenticated sources
	// first. Needed where a limit counts by Client.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(a, self.exists_one(b, a.source == b.source && has(a.name) == has(b.name) && (!has(a.name) || (a.source == 'Header' ? a.name.lowerAscii() == b.name.lowerAscii() : a.name == b.name))))",message="a source is named twice: keep one of them"
	Client []ClientSource `json:"client,omitempty"`
	// Limits are independent of each other: every one whose `when` holds applies.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Limits []Limit `json:"limits"`
	// Exclude names presets of requests that are neither charged nor refused: CORSPreflight (OPTIONS
	// with Origin and Access-Control-Request-Method) and HealthCheck (GET or HEAD with the user
	// agent of a known prober, and the gRPC health service; a user agent can be forged, so add it
	// only where probes pass through the filter). Default: [CORSPreflight]. An empty list: none.
	// +listType=atomic
	// +kubebuilder:default={CORSPreflight}
	Exclude *[]Exclusion `json:"exclude,omitempty"`
	// UnknownClients says what happens to a request that yields no client, for limits that count by
	// Client: Shared (such requests share one counter), Refuse (they are refused), Exempt (such
	// limits do not apply to them). Default: Shared.
	// +kubebuilder:default=Shared
	UnknownClients UnknownClients `json:"unknownClients,omitempty"`
	// Failure says what a pod does when the owner of its counters has not been heard for a while.
	// +kubebuilder:default={}
	Failure *Failure `json:"failure,omitempty"`
	// Response says what a refusal looks like.
	// +kubebuilder:default={}
	Response *Response `json:"response,omitempty"`
}

// TargetRef names an object in the policy's namespace.
// +kubebuilder:validation:XValidation:rule="!has(self.group) || self.group == \"\" || self.group == (self.kind == 'Service' ? \"\" : self.kind in ['Deployment', 'StatefulSet', 'DaemonSet'] ? 'apps' : 'gateway.networking.k8s.io')",message="group is not that of the kind: want apps for Deployment, StatefulSet and DaemonSet, gateway.networking.k8s.io for Gateway, HTTPRoute and GRPCRoute, \"\" for Service; or leave it out"
type TargetRef struct {
	// Group of the object's kind. Default: the group of the known kind ("" for Service, apps for
	// Deployment, StatefulSet and DaemonSet, gateway.networking.k8s.io for Gateway, HTTPRoute and GRPCRoute).
	// +kubebuilder:validation:MaxLength=253
	Group string `json:"group,omitempty"`
	// Kind of the object: Service, Deployment, StatefulSet, DaemonSet, Gateway, HTTPRoute or GRPCRoute.
	// +kubebuilder:validation:Enum=Service;Deployment;StatefulSet;DaemonSet;Gateway;HTTPRoute;GRPCRoute
	Kind string `json:"kind"`
	// Name of the object.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?(\.[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)*$`
	Name string `json:"name"`
}

// Exclusion is a preset of requests that no limit concerns.
// +kubebuilder:validation:Enum=CORSPreflight;HealthCheck
type Exclusion string

// The presets.
const (
	CORSPreflight Exclusion = "CORSPreflight"
	HealthCheck   Exclusion = "HealthCheck"
)

// UnknownClients says what happens to requests that yield no client.
// +kubebuilder:validation:Enum=Shared;Refuse;Exempt
type UnknownClients string

// What happens to unknown clients.
const (
	UnknownShared UnknownClients = "Shared"
	UnknownRefuse UnknownClients = "Refuse"
	UnknownExempt UnknownClients = "Exempt"
)
