package policy

import (
	"cmp"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"github.com/weirproxy/weir/api/v1alpha1"
)

// View is what a condition looks at. Texts are valid during the call only.
type View interface {
	Method() string
	Path() *Path
	// Host is in the form of NormalHost.
	Host() string
	// Header returns a header's values joined by commas. name is lower case.
	Header(name string) (value string, present bool)
	// Source is the caller's address, invalid where it is not known; hops as in ClientSource.TrustedHops.
	Source(hops int) netip.Addr
}

// Condition is a limit's compiled `when`: all of its parts must hold. It is immutable and safe for
// concurrent use.
type Condition struct {
	methods  []string
	patterns []*pattern // the most specific first
	headers  []headerCondition
	hosts    []string // "*.example.com" as ".example.com"
	cidrs    []netip.Prefix
	hops     int
}

type headerCondition struct {
	name   string
	value  string
	kind   v1alpha1.HeaderMatchType
	regex  *regexp.Regexp
	invert bool
}

// NoPattern is the text of Endpoint where no path pattern matched, as none was asked for.
const NoPattern = "*"

// Matches reports whether the condition holds, and the text of the most specific path pattern that
// matched, NoPattern where the condition has none. A nil condition holds for every request.
func (c *Condition) Matches(v View) (patternText string, ok bool) {
	if c == nil {
		return NoPattern, true
	}
	if !c.matchesMethod(v.Method()) {
		return "", false
	}
	text, ok := c.matchPath(v)
	if !ok || !c.matchesHost(v) || !c.matchesSource(v) {
		return "", false
	}
	for i := range c.headers {
		if !c.headers[i].holds(v) {
			return "", false
		}
	}
	return text, true
}

func (c *Condition) matchesMethod(method string) bool {
	return len(c.methods) == 0 || c.names(method)
}

// names reports whether the condition lists the method.
func (c *Condition) names(method string) bool {
	if c == nil {
		return false
	}
	for _, m := range c.methods {
		if m == method {
			return true
		}
	}
	return false
}

func (c *Condition) matchPath(v View) (string, bool) {
	if len(c.patterns) == 0 {
		return NoPattern, true
	}
	path := v.Path()
	for _, p := range c.patterns {
		if p.matches(path) {
			return p.text, true
		}
	}
	return "", false
}

func (c *Condition) matchesHost(v View) bool {
	if len(c.hosts) == 0 {
		return true
	}
	host := v.Host()
	for _, h := range c.hosts {
		if h == host || h[0] == '.' && len(host) > len(h) && strings.HasSuffix(host, h) {
			return true
		}
	}
	return false
}

func (c *Condition) matchesSource(v View) bool {
	if len(c.cidrs) == 0 {
		return true
	}
	addr := v.Source(c.hops)
	for _, p := range c.cidrs {
		if p.Contains(addr) {
			return true
		}
	}
	return false
}

func (h *headerCondition) holds(v View) bool {
	value, present := v.Header(h.name)
	return (present && h.matches(value)) != h.invert
}

func (h *headerCondition) matches(value string) bool {
	switch h.kind {
	case v1alpha1.HeaderPresent:
		return true
	case v1alpha1.HeaderPrefix:
		return strings.HasPrefix(value, h.value)
	case v1alpha1.HeaderRegularExpression:
		return h.regex.MatchString(value)
	default:
		return value == h.value
	}
}

func compileCondition(w *v1alpha1.When, hops int) (*Condition, error) {
	if w == nil {
		return nil, nil //nolint:nilnil // no condition is a value: it holds
	}
	c := &Condition{methods: slices.Clone(w.Methods), hops: hops}
	for _, m := range w.Paths {
		p, err := compilePattern(m)
		if err != nil {
			return nil, err
		}
		c.patterns = append(c.patterns, p)
	}
	sortPatterns(c.patterns)
	for _, m := range w.Headers {
		h := headerCondition{name: strings.ToLower(m.Name), value: m.Value, kind: cmp.Or(m.Type, v1alpha1.HeaderExact), invert: m.Invert}
		if m.Type == v1alpha1.HeaderRegularExpression {
			var err error
			if h.regex, err = compileRegex(m.Value); err != nil {
				return nil, err
			}
		}
		c.headers = append(c.headers, h)
	}
	for _, h := range w.Hosts {
		c.hosts = append(c.hosts, strings.TrimPrefix(strings.ToLower(h), "*"))
	}
	for _, s := range w.SourceCIDRs {
		p, err := parsePrefix(s)
		if err != nil {
			return nil, err
		}
		c.cidrs = append(c.cidrs, p)
	}
	return c, nil
}

// NormalHost returns a request's host in lower case without port and trailing dot. It allocates only
// where the case differs.
func NormalHost(host string) string {
	colon := strings.LastIndexByte(host, ':')
	if colon > strings.LastIndexByte(host, ']') && (host[0] == '[' || strings.IndexByte(host, ':') == colon) {
		host = host[:colon]
	}
	return strings.ToLower(strings.TrimSuffix(host, "."))
}
