package policy

import "slices"

// Reads is what decisions under policies look at in a request, besides method, path, host, address and principal.
type Reads struct {
	// Headers in lower case, each once, in order of the alphabet. x-forwarded-for is among them where a policy trusts hops.
	Headers []string
	// Claims: some policy takes the client from a claim of a verified token.
	Claims bool
}

// ReadsOf returns what the policies look at together. Limits that are off count too: a change of mode is none of a filter's
// configuration.
func ReadsOf(policies []*Policy) Reads {
	var r Reads
	for _, p := range policies {
		r.client(p)
		for _, l := range p.Limits {
			r.limit(l)
		}
	}
	slices.Sort(r.Headers)
	r.Headers = slices.Compact(r.Headers)
	return r
}

func (r *Reads) client(p *Policy) {
	for _, s := range p.Client {
		switch s.Kind {
		case SourceHeader:
			r.Headers = append(r.Headers, s.Name)
		case SourceJWTClaim:
			r.Claims = true
		case SourceRemoteAddress:
			if s.TrustedHops > 0 {
				r.Headers = append(r.Headers, "x-forwarded-for")
			}
		case SourcePrincipal:
		}
	}
	if p.Exclude.CORSPreflight {
		r.Headers = append(r.Headers, "access-control-request-method", "origin")
	}
	if p.Exclude.HealthCheck {
		r.Headers = append(r.Headers, "user-agent")
	}
}

func (r *Reads) limit(l *Limit) {
	if l.When != nil {
		for i := range l.When.headers {
			r.Headers = append(r.Headers, l.When.headers[i].name)
		}
	}
	for _, d := range l.Dimensions {
		if d.Kind == ByHeader {
			r.Headers = append(r.Headers, d.Name)
		}
	}
	if l.Cost.Header != "" {
		r.Headers = append(r.Headers, l.Cost.Header)
	}
}
