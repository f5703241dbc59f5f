package policy

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/weirproxy/weir/api/v1alpha1"
)

// Compile turns a document into what programs work with. version is its offset in weir.policies;
// resolved carries the selectors of targets that select pods. An invalid document is refused whole
// with every reason (Errors). The document is not kept.
func Compile(key Key, version int64, doc *v1alpha1.QuotaPolicy, resolved []Target) (*Policy, error) {
	if errs := Validate(doc); len(errs) > 0 {
		return nil, errs
	}
	return compile(key, version, doc, resolved)
}

// compile is Compile of a valid document.
func compile(key Key, version int64, doc *v1alpha1.QuotaPolicy, resolved []Target) (*Policy, error) {
	targets, err := compileTargets(doc, resolved)
	if err != nil {
		return nil, err
	}
	p := &Policy{
		Key: key, Version: version,
		Name:           namespaceOf(doc) + "/" + doc.Metadata.Name,
		Targets:        targets,
		Client:         compileClient(doc.Spec.Client),
		UnknownClients: compileUnknown(doc.Spec.UnknownClients),
		Exclude:        compileExclude(doc.Spec.Exclude),
		Response:       compileResponse(doc.Spec.Response),
	}
	for _, s := range p.Client {
		if s.Kind == SourceRemoteAddress {
			p.SourceHops = s.TrustedHops
		}
	}
	for i := range doc.Spec.Limits {
		l, err := compileLimit(p, i, &doc.Spec)
		if err != nil {
			return nil, fmt.Errorf("limit %s: %w", doc.Spec.Limits[i].Name, err)
		}
		p.Limits = append(p.Limits, l)
	}
	return p, nil
}

func compileClient(sources []v1alpha1.ClientSource) []ClientSource {
	out := make([]ClientSource, 0, len(sources))
	for _, s := range sources {
		out = append(out, ClientSource{
			Kind: sourceKind(s.Source), Name: sourceName(s.Source, s.Name), Reveal: s.Reveal,
			IPv4Prefix: int(or(s.IPv4Prefix, 32)), IPv6Prefix: int(or(s.IPv6Prefix, 64)),
			TrustedHops: int(s.TrustedHops), Pick: pickOf(s.Pick),
		})
	}
	return out
}

func or[T any](p *T, def T) T {
	if p == nil {
		return def
	}
	return *p
}

func sourceKind(k v1alpha1.SourceKind) SourceKind {
	switch k {
	case v1alpha1.SourcePrincipal:
		return SourcePrincipal
	case v1alpha1.SourceJWTClaim:
		return SourceJWTClaim
	case v1alpha1.SourceHeader:
		return SourceHeader
	default:
		return SourceRemoteAddress
	}
}

// sourceName returns a header's name in lower case; a claim's name is as it is.
func sourceName(k v1alpha1.SourceKind, name string) string {
	if k == v1alpha1.SourceHeader {
		return strings.ToLower(name)
	}
	return name
}

func pickOf(p v1alpha1.Pick) Pick {
	switch p {
	case v1alpha1.PickFirst:
		return PickFirst
	case v1alpha1.PickLast:
		return PickLast
	default:
		return PickAll
	}
}

func compileUnknown(u v1alpha1.UnknownClients) UnknownClients {
	switch u {
	case v1alpha1.UnknownRefuse:
		return UnknownRefuse
	case v1alpha1.UnknownExempt:
		return UnknownExempt
	default:
		return UnknownShared
	}
}

func compileExclude(list *[]v1alpha1.Exclusion) Exclude {
	if list == nil {
		return Exclude{CORSPreflight: true}
	}
	var e Exclude
	for _, x := range *list {
		e.CORSPreflight = e.CORSPreflight || x == v1alpha1.CORSPreflight
		e.HealthCheck = e.HealthCheck || x == v1alpha1.HealthCheck
	}
	return e
}

const defaultStatus = 429

func compileResponse(r *v1alpha1.Response) Response {
	if r == nil {
		return Response{Status: defaultStatus}
	}
	out := Response{Status: int(or(r.Status, defaultStatus)), CORS: r.CORS}
	switch r.Headers {
	case v1alpha1.HeadersXRateLimit:
		out.Headers = HeadersXRateLimit
	case v1alpha1.HeadersNone:
		out.Headers = HeadersNone
	case v1alpha1.HeadersIETF:
	}
	return out
}

func compileLimit(p *Policy, index int, spec *v1alpha1.QuotaPolicySpec) (*Limit, error) {
	src := &spec.Limits[index]
	when, err := compileCondition(src.When, p.SourceHops)
	if err != nil {
		return nil, err
	}
	l := &Limit{
		Policy: p, Index: index, Name: src.Name, When: when,
		Mode: compileMode(src.Mode), EnforcePercent: float64(or(src.EnforcePercent, 100)),
		Cost: compileCost(src.Cost),
	}
	for _, c := range src.Counters {
		d, err := parseCounter(c)
		if err != nil {
			return nil, err
		}
		l.Dimensions = append(l.Dimensions, d)
	}
	for i := range src.Rates {
		r, err := compileRate(l, i, &src.Rates[i], src, spec.Failure)
		if err != nil {
			return nil, err
		}
		l.Rates = append(l.Rates, r)
	}
	for i := range src.Overrides {
		o, err := compileOverride(l, src, &src.Overrides[i], spec.Failure)
		if err != nil {
			return nil, err
		}
		l.Overrides = append(l.Overrides, o)
	}
	l.overrides = indexOverrides(l.Overrides)
	return l, nil
}

func compileMode(m v1alpha1.Mode) Mode {
	switch m {
	case v1alpha1.ModeShadow:
		return Shadow
	case v1alpha1.ModeOff:
		return Off
	default:
		return Enforce
	}
}

func compileCost(c *v1alpha1.Cost) Cost {
	if c == nil {
		return Cost{Default: 1, Max: 1}
	}
	def := uint64(or(c.Default, 1))                                                                  //nolint:gosec // validated: not negative
	return Cost{Header: strings.ToLower(c.Header), Default: def, Max: uint64(or(c.Max, int64(def)))} //nolint:gosec // the same
}

// parseCounter reads Client, Endpoint, Method, Host or Header:NAME with options.
func parseCounter(c v1alpha1.Counter) (Dimension, error) {
	switch c {
	case v1alpha1.CounterClient:
		return Dimension{Kind: ByClient}, nil
	case v1alpha1.CounterEndpoint:
		return Dimension{Kind: ByEndpoint}, nil
	case v1alpha1.CounterMethod:
		return Dimension{Kind: ByMethod}, nil
	case v1alpha1.CounterHost:
		return Dimension{Kind: ByHost}, nil
	}
	rest, ok := strings.CutPrefix(string(c), v1alpha1.CounterHeaderPrefix)
	if !ok {
		return Dimension{}, fmt.Errorf("%q is no counter", c)
	}
	name, options, more := strings.Cut(rest, ":")
	if more && (options == "" || strings.HasSuffix(options, ":")) {
		return Dimension{}, fmt.Errorf("%q ends in a colon: want Reveal, First or Last after it", c)
	}
	d := Dimension{Kind: ByHeader, Name: strings.ToLower(name)}
	if !isToken(name, maxHeaderName) {
		return Dimension{}, fmt.Errorf("%q is no header's name", name)
	}
	for options != "" {
		var option string
		option, options, _ = strings.Cut(options, ":")
		switch option {
		case "Reveal":
			d.Reveal = true
		case "First":
			d.Pick = PickFirst
		case "Last":
			d.Pick = PickLast
		default:
			return Dimension{}, fmt.Errorf("%q is no option of a header: want Reveal, First or Last", option)
		}
	}
	return d, nil
}

func compileOverride(l *Limit, src *v1alpha1.Limit, o *v1alpha1.Override, f *v1alpha1.Failure) (*Override, error) {
	out := &Override{Unlimited: o.Unlimited, Rates: make([]*Rate, len(l.Rates))}
	for _, c := range o.Clients {
		m := ClientMatch{Kind: sourceKind(c.Source), Name: sourceName(c.Source, c.Name), Value: c.Value}
		if c.ValueHash != "" {
			m.Value, m.Hashed = c.ValueHash, true
		}
		if m.Kind == SourceRemoteAddress {
			p, err := parsePrefix(c.Value)
			if err != nil {
				return nil, err
			}
			m.Prefix, m.Value = p, p.String()
		}
		out.Clients = append(out.Clients, m)
	}
	for i := range o.Rates {
		r, err := compileRate(l, 0, &o.Rates[i], src, f)
		if err != nil {
			return nil, err
		}
		for _, own := range l.Rates {
			if own.has(&r.Identity) {
				r.Index = own.Index
				out.Rates[own.Index] = r
			}
		}
	}
	return out, nil
}

// parsePrefix reads an address or a prefix; IPv4 written as IPv6 becomes IPv4.
func parsePrefix(s string) (netip.Prefix, error) {
	if !strings.Contains(s, "/") {
		a, err := netip.ParseAddr(s)
		if err != nil || a.Zone() != "" {
			return netip.Prefix{}, fmt.Errorf("%q is no address", s)
		}
		a = a.Unmap()
		return netip.PrefixFrom(a, a.BitLen()), nil
	}
	p, err := netip.ParsePrefix(s)
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("%q is no address or prefix", s)
	}
	if p.Addr().Is4In6() {
		if p.Bits() < 96 {
			return netip.Prefix{}, fmt.Errorf("%q mixes IPv4 and IPv6; write them apart", s)
		}
		p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
	}
	return p.Masked(), nil
}
