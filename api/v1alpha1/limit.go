package v1alpha1

// Limit is one quota: which requests it concerns, what is counted apart, and how much is allowed.
// +kubebuilder:validation:XValidation:rule="!has(self.counters) || !('Endpoint' in self.counters) || (has(self.when) && has(self.when.paths) && size(self.when.paths) > 0)",message="counters has Endpoint, but when has no paths to tell endpoints apart: list the paths, or count by Method"
// +kubebuilder:validation:XValidation:rule="!has(self.overrides) || size(self.overrides) == 0 || (has(self.counters) && 'Client' in self.counters)",message="overrides need Client among the counters"
// +kubebuilder:validation:XValidation:rule="!has(self.cost) || self.rates.all(r, (has(r.burst) ? r.burst : r.limit) >= (has(self.cost.max) ? self.cost.max : 1) && (has(r.burst) ? r.burst : r.limit) >= (has(self.cost.default) ? self.cost.default : 1))",message="cost is above the smallest limit or burst of rates: such a request could never pass; lower it or raise the limit"
// +kubebuilder:validation:XValidation:rule="!has(self.cost) || !has(self.cost.max) || !has(self.overrides) || self.overrides.all(o, !has(o.rates) || o.rates.all(r, (has(r.burst) ? r.burst : r.limit) >= self.cost.max))",message="cost.max is above the smallest limit or burst of an override: such a request could never pass; lower it or raise the limit"
type Limit struct {
	// Name of the limit, unique in the policy; answers and metrics show it. Lower-case letters, digits and '-'.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`
	Name string `json:"name"`
	// When restricts the limit to some requests. Default: every request.
	When *When `json:"when,omitempty"`
	// Counters say what is counted apart: one counter for each distinct combination of
	// Client; Endpoint (method and text of the path pattern that matched, "*" where there is none);
	// Method; Host; and named headers, written Header:NAME. A header's value is taken for a secret and
	// leaves the pod as a keyed hash only, unless written Header:NAME:Reveal; Header:NAME:First and
	// Header:NAME:Last take one of a repeated header's values. Default: none, one counter for the whole target.
	// +listType=set
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MaxLength=160
	// +kubebuilder:validation:items:Pattern=`^(Client|Endpoint|Method|Host|Header:[-A-Za-z0-9!#$%&*+.^_|~\x27\x60]{1,128}(:(Reveal|First|Last))*)$`
	Counters []Counter `json:"counters,omitempty"`
	// Rates must all hold. No two of one algorithm and window.
	// +kubebuilder:validation:MinItems=1
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:XValidation:rule="self.all(a, self.exists_one(b, a.algorithm == b.algorithm && has(a.period) == has(b.period) && (!has(a.period) || a.period == b.period) && (has(a.timeZone) ? a.timeZone : 'UTC') == (has(b.timeZone) ? b.timeZone : 'UTC') && has(a.window) == has(b.window) && (!has(a.window) || duration(a.window) == duration(b.window))))",message="two rates have one algorithm and window (or period and time zone): keep one of them"
	Rates []Rate `json:"rates"`
	// Overrides give some clients other amounts. An exact value goes before the longest prefix, then
	// the first written. Counters must have Client.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1000
	Overrides []Override `json:"overrides,omitempty"`
	// Mode: Enforce; Shadow (counted and reported, never refused); Off (not counted). Default: Enforce.
	// +kubebuilder:default=Enforce
	Mode Mode `json:"mode,omitempty"`
	// EnforcePercent of clients (of requests, where a request yields no client) are refused when over
	// the limit, the rest only reported. The same clients each time. 0 to 100. Default: 100.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	// +kubebuilder:default=100
	EnforcePercent *int32 `json:"enforcePercent,omitempty"`
	// Cost is what one request charges. Default: 1.
	Cost *Cost `json:"cost,omitempty"`
	// Overcommit says what a pod may take beyond its share while the limit has room: Learned (bursts
	// that proved harmless), None, or a number from 0 to 1 in quotes, such as "0.25": that part of what is left. Default: Learned.
	// +kubebuilder:default=Learned
	Overcommit Overcommit `json:"overcommit,omitempty"`
	// Accuracy: Normal, or Strict (less over-admission for lower utilisation; below 4 units a pod it
	// runs as Normal). Default: Normal.
	// +kubebuilder:default=Normal
	Accuracy Accuracy `json:"accuracy,omitempty"`
}

// Counter is one of Client, Endpoint, Method, Host, Header:NAME with the options :Reveal, :First, :Last.
type Counter string

// The counters that are one word, and the beginning of the others.
const (
	CounterClient       Counter = "Client"
	CounterEndpoint     Counter = "Endpoint"
	CounterMethod       Counter = "Method"
	CounterHost         Counter = "Host"
	CounterHeaderPrefix         = "Header:"
)

// Rate is an amount for a time.
// +kubebuilder:validation:XValidation:rule="(self.algorithm == 'Calendar') == has(self.period)",message="period is needed for Calendar, and is for Calendar only"
// +kubebuilder:validation:XValidation:rule="(self.algorithm == 'Calendar') != has(self.window)",message="window is needed for SlidingWindow and TokenBucket, and is not for Calendar"
// +kubebuilder:validation:XValidation:rule="self.algorithm == 'Calendar' || !has(self.timeZone)",message="timeZone is for Calendar only"
// +kubebuilder:validation:XValidation:rule="self.algorithm == 'TokenBucket' || !has(self.burst)",message="burst is for TokenBucket only"
// +kubebuilder:validation:XValidation:rule="!has(self.window) || (duration(self.window) >= duration(self.algorithm == 'TokenBucket' ? '1ms' : '1s') && duration(self.window) <= duration('744h'))",message="window is out of range: want 1s to 744h for SlidingWindow, 1ms to 744h for TokenBucket"
type Rate struct {
	// Limit is the units (requests, unless `cost` says otherwise) allowed in a window or period; for TokenBucket what
	// refills in a window. At least 1.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000000000000
	Limit int64 `json:"limit"`
	// Window, such as 1s, 1m, 24h. SlidingWindow: 1s to 744h. TokenBucket: 1ms to 744h. Not for Calendar.
	Window *Duration `json:"window,omitempty"`
	// Algorithm: SlidingWindow, TokenBucket or Calendar (starts anew at the civil boundary). Default: SlidingWindow.
	// +kubebuilder:default=SlidingWindow
	Algorithm Algorithm `json:"algorithm,omitempty"`
	// Burst is a bucket's capacity, units. TokenBucket only. Default: Limit.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000000000000
	Burst *int64 `json:"burst,omitempty"`
	// Period: Hour, Day, Week (from Monday), Month or Year. Needed for Calendar, and Calendar only.
	Period Period `json:"period,omitempty"`
	// TimeZone is an IANA name such as Asia/Singapore, whose days and daylight saving time periods follow. Calendar only. Default: UTC.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	TimeZone string `json:"timeZone,omitempty"`
}

// Algorithm is how a rate counts.
// +kubebuilder:validation:Enum=SlidingWindow;TokenBucket;Calendar
type Algorithm string

// The algorithms.
const (
	SlidingWindow Algorithm = "SlidingWindow"
	TokenBucket   Algorithm = "TokenBucket"
	Calendar      Algorithm = "Calendar"
)

// Period is a civil period.
// +kubebuilder:validation:Enum=Hour;Day;Week;Month;Year
type Period string

// The periods.
const (
	Hour  Period = "Hour"
	Day   Period = "Day"
	Week  Period = "Week"
	Month Period = "Month"
	Year  Period = "Year"
)

// Override gives some clients other rates, or none.
// +kubebuilder:validation:XValidation:rule="(has(self.rates) && size(self.rates) > 0) != (has(self.unlimited) && self.unlimited)",message="an override has either rates or unlimited: give one of them"
type Override struct {
	// Clients that it concerns.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	Clients []OverrideClient `json:"clients"`
	// Rates replace all of the limit's. Each has algorithm and window (period, time zone) of one of the
	// limit's rates; those of the limit's that have no counterpart do not apply to these clients. Either Rates or Unlimited.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	Rates []Rate `json:"rates,omitempty"`
	// Unlimited: the limit does not apply to these clients.
	Unlimited bool `json:"unlimited,omitempty"`
}

// OverrideClient is a client by the source that yields it: a header cannot claim a principal's.
type OverrideClient struct {
	// Source is one of spec.client's.
	Source SourceKind `json:"source"`
	// Name of the claim or header, as in spec.client.
	// +kubebuilder:validation:MaxLength=256
	Name string `json:"name,omitempty"`
	// Value: exact; for RemoteAddress an address or a prefix such as 10.0.0.0/8, no narrower than the
	// client's own. Either Value or ValueHash.
	// +kubebuilder:validation:MaxLength=256
	Value string `json:"value,omitempty"`
	// ValueHash is the keyed hash of the value, as `weir hash` prints it. A secret header's Value is published in this form.
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{32}$`
	ValueHash string `json:"valueHash,omitempty"`
}

// Mode says whether a limit refuses.
// +kubebuilder:validation:Enum=Enforce;Shadow;Off
type Mode string

// The modes.
const (
	ModeEnforce Mode = "Enforce"
	ModeShadow  Mode = "Shadow"
	ModeOff     Mode = "Off"
)

// Cost is what one request charges.
// +kubebuilder:validation:XValidation:rule="!has(self.header) || self.header == \"\" || has(self.max)",message="max is missing: say what one request may charge at most"
// +kubebuilder:validation:XValidation:rule="!has(self.max) || !has(self.default) || self.default <= self.max",message="default is above max: lower it"
type Cost struct {
	// Header that carries the cost, a whole number from 0. Let a trusted proxy set it. Default: none, each request charges Default.
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^[-A-Za-z0-9!#$%&*+.^_|~\x27\x60]*$`
	Header string `json:"header,omitempty"`
	// Default is charged where the header is missing or is no number. Default: 1.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000000000000
	// +kubebuilder:default=1
	Default *int64 `json:"default,omitempty"`
	// Max is charged where the header says more. Not above the smallest limit or burst. Needed with Header.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000000000000
	Max *int64 `json:"max,omitempty"`
}

// Accuracy weighs over-admission against utilisation.
// +kubebuilder:validation:Enum=Normal;Strict
type Accuracy string

// The accuracies.
const (
	AccuracyNormal Accuracy = "Normal"
	AccuracyStrict Accuracy = "Strict"
)
