package policy

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Every way to spell a path that a service may take for another one ends as that one.
func TestCase09And12OneNormalisation(t *testing.T) {
	for _, c := range []struct{ raw, kept, split string }{
		{"/orders/7", "/orders/7", ""},
		{"/orders/7?a=b", "/orders/7", ""},
		{"/orders/7?a=b?c=/d/..", "/orders/7", ""},
		{"/orders/7?", "/orders/7", ""},
		{"?a=b", "/", ""},
		{"", "/", ""},
		{"*", "*", ""},
		{"orders", "/orders", ""},
		{"//orders///7", "/orders/7", ""},
		{"/orders/", "/orders/", ""},
		{"/./orders/./7/.", "/orders/7/", ""},
		{"/x/../orders/7", "/orders/7", ""},
		{"/../../orders", "/orders", ""},
		{"/orders/7/..", "/orders/", ""},
		{"/x/%2e%2E/orders", "/orders", ""},
		{"/x/.%2e/orders/%2e/7", "/orders/7", ""},
		{"/...", "/...", ""},
		{"/.hidden", "/.hidden", ""},
		{"/%6Frders/%37", "/orders/7", ""},
		{"/users/%40me", "/users/@me", ""},
		{`/orders\7`, "/orders/7", ""},
		{`\orders\..\x`, "/x", ""},
		{"/orders%2F7", "/orders%2F7", "/orders/7"},
		{"/orders%2f7", "/orders%2F7", "/orders/7"},
		{"/orders%5c7", "/orders%5C7", "/orders/7"},
		{"/x/..%2forders", "/x/..%2Forders", "/orders"},
		{"/x%2f%2E%2e/orders", "/x%2F../orders", "/orders"},
		{"/orders;a=b/7;c", "/orders/7", ""},
		{"/x/..;/orders", "/orders", ""},
		{"/orders;a%2F7", "/orders", "/orders/7"},
		{"/a%2Fb/..", "/", "/a/"},
		{"/;a/orders", "/orders", ""},
		{"/orders%3Ba/7", "/orders%3Ba/7", ""},
		{"/orders%3F7", "/orders%3F7", ""},
		{"/a%20b/\xff\x00", "/a%20b/%FF%00", ""},
		{"/a b", "/a%20b", ""},
		{"/100%/%zz/%4", "/100%25/%25zz/%254", ""},
		{"/%2541", "/%2541", ""},
		{"/%252F", "/%252F", ""},
		{"/a#b", "/a%23b", ""},
		{"/pkg.Service/Method", "/pkg.Service/Method", ""},
	} {
		got, _ := NormalizePath(c.raw, nil)
		if got.kept != c.kept || got.split != c.split {
			t.Errorf("%q: got %q and %q, want %q and %q", c.raw, got.kept, got.split, c.kept, c.split)
		}
	}
}

func checkNormal(t interface{ Fatalf(string, ...any) }, raw string) {
	p, buf := NormalizePath(raw, make([]byte, 0, 8))
	for _, text := range []string{p.kept, p.split} {
		if text == "" || text == "*" {
			continue
		}
		if text[0] != '/' || strings.Contains(text, "//") || strings.ContainsAny(text, "?;\\\x00 ") ||
			strings.Contains(text+"/", "/../") || strings.Contains(text+"/", "/./") {
			t.Fatalf("%q: %q is not normal", raw, text)
		}
	}
	if again, _ := NormalizePath(p.kept, buf); again.kept != p.kept {
		t.Fatalf("%q: not idempotent: %q then %q", raw, p.kept, again.kept)
	}
	if p.split != "" {
		if s, _ := NormalizePath(p.split, buf); s.kept != p.split || s.split != "" {
			t.Fatalf("%q: split reading not idempotent: %q then %q", raw, p.split, s.kept)
		}
	}
}

func FuzzNormalizePath(f *testing.F) {
	for _, s := range []string{"/a/../b;c?d", "/%2e%2e%2f\\", "*", "", "/%25%2F;/..;/", "/..%2F..", "/a/%2F../b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) { checkNormal(t, raw) })
}

func TestNormalisationIsIdempotent(t *testing.T) {
	piece := rapid.SampledFrom([]string{"/", "a", ".", "..", "%2e", "%2F", "%5C", "\\", ";", "?", "%", "%25", "%3B", "\xff", " ", "b"})
	rapid.Check(t, func(t *rapid.T) {
		checkNormal(t, strings.Join(rapid.SliceOfN(piece, 0, 12).Draw(t, "path"), ""))
	})
}

func TestAPlainPathIsNotCopied(t *testing.T) {
	buf := make([]byte, 0, 64)
	if n := testing.AllocsPerRun(100, func() { _, buf = NormalizePath("/orders/7/items.json?page=2", buf) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
