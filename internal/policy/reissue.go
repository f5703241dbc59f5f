package policy

// Reissued is p under another version: what compiling the same document again would give, at a fraction of its cost.
// A publisher that writes everything anew after its own restart changes no more than versions. p stays as it is.
func (p *Policy) Reissued(version int64) *Policy {
	if version == p.Version {
		return p
	}
	out := *p
	out.Version = version
	out.Limits = make([]*Limit, len(p.Limits))
	for i, l := range p.Limits {
		out.Limits[i] = l.reissued(&out)
	}
	return &out
}

func (l *Limit) reissued(p *Policy) *Limit {
	out := *l
	out.Policy = p
	out.Rates = out.reissuedRates(l.Rates)
	out.Overrides = make([]*Override, len(l.Overrides))
	for i, o := range l.Overrides {
		again := *o
		again.Rates = out.reissuedRates(o.Rates)
		out.Overrides[i] = &again
	}
	if l.Overrides == nil {
		out.Overrides = nil
	}
	return &out
}

// reissuedRates copies rates into the limit l; nil stays nil.
func (l *Limit) reissuedRates(rates []*Rate) []*Rate {
	out := make([]*Rate, len(rates))
	for i, r := range rates {
		if r == nil {
			continue
		}
		again, rule := *r, *r.Rule
		rule.PolicyVersion = l.Policy.Version
		again.Limit, again.Rule = l, &rule
		out[i] = &again
	}
	return out
}
