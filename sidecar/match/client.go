package match

import (
	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/internal/policy"
)

// client is who is calling, as a dimension of a counter. Without one the dimension's kind is
// DimClientMissing.
type client struct {
	found bool
	// dimension is the only item, in the form that policy.Limit.Amount takes. Its value may be in
	// the scan's scratch.
	dimension [1]wirev1.Dimension
}

// findClient takes the first source that yields a value.
func (m *Matcher) findClient(s *scan, sources []policy.ClientSource, c *client) {
	for i := range sources {
		if d, ok := m.clientFrom(s, &sources[i]); ok {
			c.found, c.dimension[0] = true, d
			return
		}
	}
	c.found, c.dimension[0] = false, wirev1.Dimension{Kind: wirev1.DimClientMissing}
}

func (m *Matcher) clientFrom(s *scan, src *policy.ClientSource) (wirev1.Dimension, bool) {
	plain, hashed := src.Kind.Dimensions()
	switch src.Kind {
	case policy.SourcePrincipal:
		return m.dimension(s, plain, hashed, "", s.req.Principal, false)
	case policy.SourceJWTClaim:
		if s.req.Claims == nil {
			return wirev1.Dimension{}, false
		}
		value, _ := s.req.Claims.Claim(src.Name)
		return m.dimension(s, plain, hashed, src.Name, value, false)
	case policy.SourceHeader:
		return m.dimension(s, plain, hashed, src.Name, s.picked(src.Name, src.Pick), !src.Reveal)
	default:
		return addressDimension(s, src)
	}
}

// dimension makes a dimension of any bytes; secret or long values leave the pod as a keyed hash. An
// empty value is none.
func (m *Matcher) dimension(s *scan, plain, hashed wirev1.DimensionKind, name, value string, secret bool) (wirev1.Dimension, bool) {
	if value == "" {
		return wirev1.Dimension{}, false
	}
	if !secret && len(value) <= wirev1.MaxPlainValue {
		return wirev1.Dimension{Kind: plain, Name: name, Value: value}, true
	}
	from := len(s.scratch)
	s.scratch = m.keys.AppendSecret(s.scratch, plain, name, raw(value))
	return wirev1.Dimension{Kind: hashed, Name: name, Value: text(s.scratch[from:])}, true
}

func addressDimension(s *scan, src *policy.ClientSource) (wirev1.Dimension, bool) {
	addr := s.Source(src.TrustedHops)
	bits := src.IPv6Prefix
	if addr.Is4() {
		bits = src.IPv4Prefix
	}
	prefix, err := addr.Prefix(bits)
	if err != nil || !addr.IsValid() {
		return wirev1.Dimension{}, false
	}
	from := len(s.scratch)
	s.scratch = prefix.AppendTo(s.scratch)
	return wirev1.Dimension{Kind: wirev1.DimClientRemoteAddress, Value: text(s.scratch[from:])}, true
}
