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
	// encoded is its canonical encoding.
	encoded []byte
}

// boundSource is a source of clients, and how its values become dimensions.
type boundSource struct {
	*policy.ClientSource
	form form
}

func (m *Matcher) bindSource(src *policy.ClientSource) boundSource {
	plain, hashed := src.Kind.Dimensions()
	switch src.Kind {
	case policy.SourceHeader:
		return boundSource{src, m.form(plain, hashed, src.Name, !src.Reveal)}
	case policy.SourceJWTClaim:
		return boundSource{src, m.form(plain, hashed, src.Name, false)}
	default:
		return boundSource{src, m.form(plain, hashed, "", false)}
	}
}

// findClient takes the first source that yields a value.
func findClient(s *scan, sources []boundSource, c *client) {
	c.found, c.dimension[0] = false, wirev1.Dimension{Kind: wirev1.DimClientMissing}
	for i := range sources {
		if d, ok := clientFrom(s, &sources[i]); ok {
			c.found, c.dimension[0] = true, d
			break
		}
	}
	d := &c.dimension[0]
	c.encoded = wirev1.AppendDimension(c.encoded[:0], d.Kind, d.Name, d.Value)
}

func clientFrom(s *scan, src *boundSource) (wirev1.Dimension, bool) {
	switch src.Kind {
	case policy.SourcePrincipal:
		return src.form.dimension(s, s.req.Principal)
	case policy.SourceJWTClaim:
		if s.req.Claims == nil {
			return wirev1.Dimension{}, false
		}
		value, _ := s.req.Claims.Claim(src.Name)
		return src.form.dimension(s, value)
	case policy.SourceHeader:
		return src.form.dimension(s, s.picked(src.Name, src.Pick))
	default:
		return addressDimension(s, src.ClientSource)
	}
}

// form is how the values of one source become dimensions: secret or long ones leave the pod as a keyed hash.
type form struct {
	plain, hashed wirev1.DimensionKind
	name          string
	secret        bool
	hash          wirev1.Secret
}

func (m *Matcher) form(plain, hashed wirev1.DimensionKind, name string, secret bool) form {
	return form{plain: plain, hashed: hashed, name: name, secret: secret, hash: m.keys.Secret(plain, name)}
}

// dimension makes a dimension of any bytes. An empty value is none.
func (f *form) dimension(s *scan, value string) (wirev1.Dimension, bool) {
	if value == "" {
		return wirev1.Dimension{}, false
	}
	if !f.secret && len(value) <= wirev1.MaxPlainValue {
		return wirev1.Dimension{Kind: f.plain, Name: f.name, Value: value}, true
	}
	from := len(s.scratch)
	s.scratch = f.hash.Append(s.scratch, raw(value))
	return wirev1.Dimension{Kind: f.hashed, Name: f.name, Value: text(s.scratch[from:])}, true
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
