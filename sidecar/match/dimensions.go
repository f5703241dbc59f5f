package match

import (
	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/internal/policy"
)

// boundDimension is a dimension of a limit, and how its values are written; Client and Endpoint have no form of their own.
type boundDimension struct {
	*policy.Dimension
	form form
}

func (m *Matcher) bindDimension(d *policy.Dimension) boundDimension {
	switch d.Kind {
	case policy.ByHost:
		return boundDimension{d, m.form(wirev1.DimHost, wirev1.DimHostHashed, "", false)}
	case policy.ByHeader:
		return boundDimension{d, m.form(wirev1.DimHeader, wirev1.DimHeaderHashed, d.Name, !d.Reveal)}
	default:
		return boundDimension{Dimension: d}
	}
}

// appendDimensions appends the canonical encoding of a limit's dimensions for the request.
func (b *boundLimit) appendDimensions(dst []byte, endpoint string, res *Result) []byte {
	s := &res.scan
	for i := range b.dimensions {
		d := &b.dimensions[i]
		switch d.Kind {
		case policy.ByClient:
			dst = append(dst, res.client.encoded...)
		case policy.ByEndpoint:
			dst = appendEndpoint(dst, b.limit, s.req.Method, endpoint)
		case policy.ByMethod:
			dst = wirev1.AppendDimension(dst, wirev1.DimMethod, "", b.limit.MethodLabel(s.req.Method))
		case policy.ByHost:
			v, ok := d.form.dimension(s, s.Host())
			if !ok {
				v = wirev1.Dimension{Kind: wirev1.DimHost}
			}
			dst = wirev1.AppendDimension(dst, v.Kind, v.Name, v.Value)
		case policy.ByHeader:
			v, ok := d.form.dimension(s, s.picked(d.Name, d.Pick))
			if !ok {
				v = wirev1.Dimension{Kind: wirev1.DimHeaderMissing, Name: d.Name}
			}
			dst = wirev1.AppendDimension(dst, v.Kind, v.Name, v.Value)
		}
	}
	return dst
}

// appendEndpoint: the method with the text of the pattern that matched, never the path itself.
func appendEndpoint(dst []byte, l *policy.Limit, method, pattern string) []byte {
	if pattern == policy.NoPattern {
		return wirev1.AppendDimension(dst, wirev1.DimEndpoint, "", pattern)
	}
	return wirev1.AppendEndpoint(dst, l.MethodLabel(method), pattern)
}

// cost reads what the request charges: a whole number, at most Max.
func (s *scan) cost(c *policy.Cost) uint64 {
	if c.Header == "" {
		return c.Default
	}
	value, _ := s.Header(c.Header)
	cost, ok := parseWhole(value)
	if !ok {
		return c.Default
	}
	return min(cost, c.Max)
}

// parseWhole reads decimal digits; what does not fit is the largest number.
func parseWhole(s string) (uint64, bool) {
	const most = ^uint64(0)
	n := uint64(0)
	for i := range len(s) {
		d := uint64(s[i] - '0')
		if d > 9 {
			return 0, false
		}
		if n > (most-d)/10 {
			n = most
			continue
		}
		n = n*10 + d
	}
	return n, s != ""
}
