package policy

import (
	"net/netip"
	"slices"

	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/internal/quota"
)

// Amount returns the rule in force for one counter of the limit's rate: the limit's own, or that of
// the override that applies to the counter's client. Unlimited: the rate does not apply to it.
// Pod and owner both decide by this function. The overflow counter has the limit's own amount.
func (l *Limit) Amount(rateIndex int, dims []wirev1.Dimension) (rule *quota.Rule, unlimited bool) {
	if !l.overrides.empty() {
		for i := range dims {
			if o := l.OverrideFor(&dims[i]); o != nil {
				return o.amount(rateIndex)
			}
		}
	}
	return l.Rates[rateIndex].Rule, false
}

func (o *Override) amount(rateIndex int) (*quota.Rule, bool) {
	if o.Unlimited || o.Rates[rateIndex] == nil {
		return nil, true
	}
	return o.Rates[rateIndex].Rule, false
}

// OverrideFor returns the override that applies to a client dimension, nil if none. An exact value
// goes before the longest prefix; of equals, the first written. It does not allocate.
func (l *Limit) OverrideFor(client *wirev1.Dimension) *Override {
	x := &l.overrides
	if i, ok := x.exact[exactKey{client.Kind, client.Name, client.Value}]; ok {
		return l.Overrides[i]
	}
	if client.Kind != wirev1.DimClientRemoteAddress || len(x.prefixes) == 0 {
		return nil
	}
	p, err := netip.ParsePrefix(client.Value)
	if err != nil {
		return nil
	}
	for _, c := range x.prefixes {
		if c.prefix.Bits() <= p.Bits() && c.prefix.Contains(p.Addr()) {
			return l.Overrides[c.override]
		}
	}
	return nil
}

// overrideIndex finds the override of a client: exact values by a map, prefixes from the longest.
type overrideIndex struct {
	exact    map[exactKey]int
	prefixes []prefixOverride
}

type exactKey struct {
	kind        wirev1.DimensionKind
	name, value string
}

type prefixOverride struct {
	prefix   netip.Prefix
	override int
}

func (x *overrideIndex) empty() bool { return len(x.exact) == 0 && len(x.prefixes) == 0 }

func indexOverrides(overrides []*Override) overrideIndex {
	x := overrideIndex{exact: make(map[exactKey]int)}
	for i, o := range overrides {
		for _, c := range o.Clients {
			if c.Kind == SourceRemoteAddress {
				x.prefixes = append(x.prefixes, prefixOverride{c.Prefix, i})
				continue
			}
			for _, kind := range c.dimensionKinds() {
				k := exactKey{kind, c.Name, c.Value}
				if _, earlier := x.exact[k]; !earlier {
					x.exact[k] = i
				}
			}
		}
	}
	slices.SortStableFunc(x.prefixes, func(a, b prefixOverride) int { return b.prefix.Bits() - a.prefix.Bits() })
	return x
}

func (c *ClientMatch) dimensionKinds() []wirev1.DimensionKind {
	plain, hashed := c.Kind.Dimensions()
	if c.Hashed {
		return []wirev1.DimensionKind{hashed}
	}
	return []wirev1.DimensionKind{plain}
}

// Dimensions returns the kinds under which an identity carries the source's values: as they are,
// and hashed. An address is never hashed: both are the same.
func (k SourceKind) Dimensions() (plain, hashed wirev1.DimensionKind) {
	switch k {
	case SourcePrincipal:
		return wirev1.DimClientPrincipal, wirev1.DimClientPrincipalHashed
	case SourceJWTClaim:
		return wirev1.DimClientJWTClaim, wirev1.DimClientJWTClaimHashed
	case SourceHeader:
		return wirev1.DimClientHeader, wirev1.DimClientHeaderHashed
	default:
		return wirev1.DimClientRemoteAddress, wirev1.DimClientRemoteAddress
	}
}
