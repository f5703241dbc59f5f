package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/weirproxy/weir/api/v1alpha1"
)

func (c *checker) when(field string, w *v1alpha1.When) {
	c.atMost(field+".methods", len(w.Methods), maxConditions)
	for i, m := range w.Methods {
		c.method(at(field+".methods", i), m)
	}
	c.atMost(field+".paths", len(w.Paths), maxConditions)
	seen := make(map[string]int)
	for i := range w.Paths {
		c.path(at(field+".paths", i), &w.Paths[i])
		c.unique(at(field+".paths", i), string(cmp.Or(w.Paths[i].Type, v1alpha1.PathExact))+" "+w.Paths[i].Value, i, field+".paths", seen)
	}
	c.atMost(field+".headers", len(w.Headers), maxConditions)
	for i := range w.Headers {
		c.headerMatch(at(field+".headers", i), &w.Headers[i])
	}
	c.atMost(field+".hosts", len(w.Hosts), maxConditions)
	for i, h := range w.Hosts {
		c.host(at(field+".hosts", i), h)
	}
	c.atMost(field+".sourceCIDRs", len(w.SourceCIDRs), maxConditions)
	for i, s := range w.SourceCIDRs {
		if _, err := parsePrefix(s); err != nil {
			c.fail(at(field+".sourceCIDRs", i), clip(err.Error()), "want an address or a prefix such as 10.0.0.0/8")
		}
	}
}

func (c *checker) method(field, m string) {
	if !isToken(m, maxMethod) {
		c.fail(field, fmt.Sprintf("%q is no method", clip(m)), "want a method such as GET")
		return
	}
	if upper := strings.ToUpper(m); upper != m && isStandardMethod(upper) {
		c.fail(field, fmt.Sprintf("%q is not %q: methods are told apart by case", m, upper), "write "+upper)
	}
}

const maxMethod = 32

func isStandardMethod(m string) bool {
	return slices.Contains([]string{"GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "CONNECT", "TRACE"}, m)
}

func (c *checker) path(field string, p *v1alpha1.PathMatch) {
	if !oneOf(c, field+".type", p.Type, true,
		v1alpha1.PathExact, v1alpha1.PathPrefix, v1alpha1.PathTemplate, v1alpha1.PathRegularExpression) {
		return
	}
	if !c.required(field+".value", p.Value, "give the path") {
		return
	}
	if len(p.Value) > c.patternRoom() {
		c.fail(field+".value", fmt.Sprintf("has %d bytes, at most %d", len(p.Value), c.patternRoom()), "shorten it")
		return
	}
	if _, err := compilePattern(*p); err != nil {
		c.fail(field+".value", err.Error(), "")
		return
	}
	if p.Type != v1alpha1.PathTemplate && p.Type != v1alpha1.PathRegularExpression && strings.ContainsAny(p.Value, "{}") {
		c.fail(field+".value", "has braces, which stand for themselves here", "set type: Template, or write them as %7B and %7D")
	}
}

// patternRoom is what an identity carries of a pattern beside the method.
func (c *checker) patternRoom() int { return maxValue - maxMethod - 1 }

func (c *checker) headerMatch(field string, h *v1alpha1.HeaderMatch) {
	c.headerName(field+".name", h.Name)
	if !oneOf(c, field+".type", h.Type, true,
		v1alpha1.HeaderExact, v1alpha1.HeaderPrefix, v1alpha1.HeaderRegularExpression, v1alpha1.HeaderPresent) {
		return
	}
	if h.Type == v1alpha1.HeaderPresent {
		if h.Value != "" {
			c.fail(field+".value", "is not for Present", "remove it, or set another type")
		}
		return
	}
	if h.Type != v1alpha1.HeaderExact && h.Type != "" {
		c.required(field+".value", h.Value, "give it, or set type: Present")
	}
	if len(h.Value) > maxPattern {
		c.fail(field+".value", fmt.Sprintf("has %d bytes, at most %d", len(h.Value), maxPattern), "shorten it")
		return
	}
	if h.Type == v1alpha1.HeaderRegularExpression {
		if _, err := compileRegex(h.Value); err != nil {
			c.fail(field+".value", err.Error(), "want an RE2 expression for the whole value")
		}
	}
}

func (c *checker) host(field, h string) {
	name, _ := strings.CutPrefix(strings.ToLower(h), "*.")
	if strings.HasPrefix(name, "[") || isName(name) {
		return
	}
	remedy := "want a name such as api.example.com or *.example.com"
	if strings.Contains(name, ":") {
		remedy = "leave the port out: hosts are compared without it"
	}
	c.fail(field, fmt.Sprintf("%q is no host", clip(h)), remedy)
}
