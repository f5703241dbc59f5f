package policy

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/weirproxy/weir/api/v1alpha1"
)

func compiled(tb testing.TB, kind v1alpha1.PathMatchType, value string) *pattern {
	tb.Helper()
	p, err := compilePattern(v1alpha1.PathMatch{Type: kind, Value: value})
	if err != nil {
		tb.Fatalf("%s %s: %v", kind, value, err)
	}
	return p
}

func TestPatterns(t *testing.T) {
	const (
		exact, prefix, template, regex = v1alpha1.PathExact, v1alpha1.PathPrefix, v1alpha1.PathTemplate, v1alpha1.PathRegularExpression
	)
	for _, c := range []struct {
		kind         v1alpha1.PathMatchType
		value        string
		match, other []string
	}{
		{exact, "/", []string{"/", "", "//", "/.", "/?a", "/x/.."}, []string{"/a", "*"}},
		{exact, "/orders", []string{"/orders", "/orders/", "/orders?x", "/%6frders", "/x/../orders", "/orders;v=1", "/orders%2F"}, []string{"/orders/7", "/order", "/Orders"}},
		{exact, "/users/@me", []string{"/users/%40me"}, []string{"/users/me"}},
		{exact, "/users/%40me", []string{"/users/@me"}, nil},
		{exact, "/a%2Fb", []string{"/a%2fb"}, []string{"/a/b", "/a%252Fb"}},
		{prefix, "/", []string{"/", "/a/b", "/?x"}, []string{"*"}},
		{prefix, "/a", []string{"/a", "/a/", "/a/b/c", "/a%2Fb", `/a\b`, "/x/..%2fa"}, []string{"/ab", "/", "/b/a"}},
		{prefix, "/a/", []string{"/a", "/a/b"}, []string{"/ab"}},
		{template, "/orders/{id}", []string{"/orders/7", "/orders/7/", "/orders%2F7", "/orders/a%2Fb", "/orders//7", "/x/%2e%2e/orders/7"}, []string{"/orders", "/orders/", "/orders/7/items"}},
		{template, "/orders/{id}/items/{item}", []string{"/orders/7/items/8"}, []string{"/orders/7/items", "/orders/7/things/8"}},
		{template, "/files/{rest=**}", []string{"/files", "/files/a", "/files/a/b"}, []string{"/filesystem"}},
		{template, "/{any}", []string{"/a"}, []string{"/", "/a/b"}},
		{regex, "/v[0-9]+/.*", []string{"/v1/", "/v22/a/b", "/v1/a?b"}, []string{"/v/a", "/x/v1/a", "/v1"}},
		{regex, "/a|/b", []string{"/a", "/b"}, []string{"/ab", "/a/b"}},
	} {
		p := compiled(t, c.kind, c.value)
		for _, raw := range c.match {
			if path, _ := NormalizePath(raw, nil); !p.matches(&path) {
				t.Errorf("%s %s: does not match %q", c.kind, c.value, raw)
			}
		}
		for _, raw := range c.other {
			if path, _ := NormalizePath(raw, nil); p.matches(&path) {
				t.Errorf("%s %s: matches %q", c.kind, c.value, raw)
			}
		}
	}
}

// The table that defines which of several matching patterns names the endpoint.
func TestCase26MostSpecificPatternWins(t *testing.T) {
	all := []v1alpha1.PathMatch{
		{Type: v1alpha1.PathRegularExpression, Value: "/.*"},
		{Type: v1alpha1.PathRegularExpression, Value: "/a.*"},
		{Type: v1alpha1.PathPrefix, Value: "/"},
		{Type: v1alpha1.PathTemplate, Value: "/{first=**}"},
		{Type: v1alpha1.PathTemplate, Value: "/{x}"},
		{Type: v1alpha1.PathPrefix, Value: "/a"},
		{Type: v1alpha1.PathTemplate, Value: "/{x}/b"},
		{Type: v1alpha1.PathTemplate, Value: "/a/{y}"},
		{Type: v1alpha1.PathTemplate, Value: "/a/{y}/c"},
		{Type: v1alpha1.PathPrefix, Value: "/a/b"},
		{Type: v1alpha1.PathTemplate, Value: "/a/{rest=**}"},
		{Type: v1alpha1.PathExact, Value: "/a/b"},
		{Type: v1alpha1.PathTemplate, Value: "/{x}/{y}/c"},
		{Type: v1alpha1.PathTemplate, Value: "/a/b/{z}"},
	}
	c, err := compileCondition(&v1alpha1.When{Paths: all}, 0)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"/":        "/",        // a prefix goes before the equal template, being first written
		"/a":       "/a",       // literal before {x}
		"/z":       "/{x}",     // {x} before the rest
		"/a/b":     "/a/b",     // exact before prefix, template and regular expression
		"/z/b":     "/{x}/b",   // a literal after a variable
		"/a/z":     "/a/{y}",   // {y} before the rest
		"/a/z/c":   "/a/{y}/c", // leftmost difference decides: /a before /{x}
		"/a/b/c":   "/a/b/{z}", // literal b before {y}, although that has the literal c
		"/a/b/c/d": "/a/b",     // the longer prefix
		"/z/z/c":   "/{x}/{y}/c",
		"/z/z/z":   "/", // nothing but the whole
		"/a/z/z/z": "/a",
	} {
		got, ok := c.Matches(&view{path: path})
		if !ok || got != want {
			t.Errorf("%s: %q, %v, want %q", path, got, ok, want)
		}
	}
}

// Whatever the order in which patterns are written, the same one wins (but for equals).
func TestCase26OrderOfWritingDoesNotMatter(t *testing.T) {
	segment := rapid.SampledFrom([]string{"/a", "/b", "/{x}"})
	rapid.Check(t, func(t *rapid.T) {
		seen := map[string]bool{}
		var paths []v1alpha1.PathMatch
		for range rapid.IntRange(1, 6).Draw(t, "patterns") {
			text := ""
			for i := range rapid.IntRange(1, 3).Draw(t, "segments") {
				s := segment.Draw(t, "segment")
				if s == "/{x}" {
					s = "/{x" + string(rune('0'+i)) + "}"
				}
				text += s
			}
			if !seen[text] {
				seen[text] = true
				paths = append(paths, v1alpha1.PathMatch{Type: v1alpha1.PathTemplate, Value: text})
			}
		}
		shuffled := rapid.Permutation(paths).Draw(t, "order")
		a, err := compileCondition(&v1alpha1.When{Paths: paths}, 0)
		if err != nil {
			t.Fatal(err)
		}
		b, err := compileCondition(&v1alpha1.When{Paths: shuffled}, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{"/a", "/b", "/c", "/a/b", "/b/a", "/a/a/a", "/c/a/b"} {
			x, okX := a.Matches(&view{path: path})
			y, okY := b.Matches(&view{path: path})
			if x != y || okX != okY {
				t.Fatalf("%s: %q in one order, %q in another", path, x, y)
			}
		}
	})
}
