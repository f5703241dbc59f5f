package match

import (
	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/internal/policy"
)

// dimensions returns the canonical encoding of a limit's dimensions for the request, in the Result's memory.
func (m *Matcher) dimensions(l *policy.Limit, endpoint string, res *Result) []byte {
	from := len(res.dims)
	for i := range l.Dimensions {
		d := m.limitDimension(&l.Dimensions[i], l, endpoint, res)
		res.dims = wirev1.AppendDimension(res.dims, d.Kind, d.Name, d.Value)
	}
	return res.dims[from:]
}

func (m *Matcher) limitDimension(d *policy.Dimension, l *policy.Limit, endpoint string, res *Result) wirev1.Dimension {
	s := &res.scan
	switch d.Kind {
	case policy.ByEndpoint:
		return wirev1.Dimension{Kind: wirev1.DimEndpoint, Value: s.endpoint(l, endpoint)}
	case policy.ByMethod:
		return wirev1.Dimension{Kind: wirev1.DimMethod, Value: l.MethodLabel(s.req.Method)}
	case policy.ByHost:
		if v, ok := m.dimension(s, wirev1.DimHost, wirev1.DimHostHashed, "", s.Host(), false); ok {
			return v
		}
		return wirev1.Dimension{Kind: wirev1.DimHost}
	case policy.ByHeader:
		value := s.picked(d.Name, d.Pick)
		if v, ok := m.dimension(s, wirev1.DimHeader, wirev1.DimHeaderHashed, d.Name, value, !d.Reveal); ok {
			return v
		}
		return wirev1.Dimension{Kind: wirev1.DimHeaderMissing, Name: d.Name}
	default:
		return res.client.dimension[0]
	}
}

// endpoint is the method with the text of the pattern that matched, never the path itself.
func (s *scan) endpoint(l *policy.Limit, pattern string) string {
	if pattern == policy.NoPattern {
		return policy.NoPattern
	}
	from := len(s.scratch)
	s.scratch = append(s.scratch, l.MethodLabel(s.req.Method)...)
	s.scratch = append(s.scratch, ' ')
	s.scratch = append(s.scratch, pattern...)
	return text(s.scratch[from:])
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
