package policy

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/weirproxy/weir/api/v1alpha1"
)

// pattern is one compiled path pattern.
type pattern struct {
	text     string // as written: what Endpoint shows
	segments []patternSegment
	regex    *regexp.Regexp // else segments
}

// patternSegment is a literal, one segment of any text, or all that remains.
type patternSegment struct {
	kind    segmentKind
	literal string
}

// segmentKind in order of specificity.
type segmentKind uint8

const (
	segmentLiteral segmentKind = iota
	segmentEnd                 // the path ends here
	segmentAny
	segmentRest
)

// compilePattern reads a pattern; an error says what is wrong with its value.
func compilePattern(m v1alpha1.PathMatch) (*pattern, error) {
	p := &pattern{text: m.Value}
	var err error
	switch m.Type {
	case v1alpha1.PathRegularExpression:
		p.regex, err = compileRegex(m.Value)
	case v1alpha1.PathTemplate:
		p.segments, err = templateSegments(m.Value)
	default:
		p.segments, err = literalSegments(m.Value)
	}
	if err != nil {
		return nil, err
	}
	if m.Type == v1alpha1.PathPrefix {
		p.segments = append(p.segments, patternSegment{kind: segmentRest})
	}
	return p, nil
}

// compileRegex compiles an expression for the whole of a text.
func compileRegex(expr string) (*regexp.Regexp, error) {
	if _, err := regexp.Compile(expr); err != nil { // alone, so that the anchors below cannot mend it
		return nil, err
	}
	return regexp.Compile(`^(?:` + expr + `)$`)
}

func literalSegments(value string) ([]patternSegment, error) {
	if err := checkPatternText(value); err != nil {
		return nil, err
	}
	normal, _ := NormalizePath(value, nil)
	var segs []patternSegment
	for s := range segmentsOf(normal.kept) {
		segs = append(segs, patternSegment{literal: s})
	}
	return segs, nil
}

func checkPatternText(value string) error {
	switch {
	case !strings.HasPrefix(value, "/"):
		return errors.New("a path begins with a slash")
	case strings.ContainsAny(value, "?;"):
		return errors.New("query and path parameters are removed before matching; leave out what follows '?' or ';'")
	case strings.Contains(value, "//"), strings.Contains(value+"/", "/./"), strings.Contains(value+"/", "/../"):
		return errors.New("paths are normalised before matching: write it without empty and dot segments")
	}
	return nil
}

func templateSegments(value string) ([]patternSegment, error) {
	if err := checkPatternText(value); err != nil {
		return nil, err
	}
	parts := slices.Collect(segmentsOf(value))
	seen := make(map[string]bool)
	var segs []patternSegment
	for i, part := range parts {
		if !strings.ContainsAny(part, "{}") {
			lit, err := literalSegments("/" + part)
			if err != nil {
				return nil, err
			}
			segs = append(segs, lit...)
			continue
		}
		seg, name, err := variableSegment(part, i == len(parts)-1)
		if err != nil {
			return nil, err
		}
		if seen[name] {
			return nil, fmt.Errorf("{%s} is named twice", name)
		}
		seen[name] = true
		segs = append(segs, seg)
	}
	return segs, nil
}

func variableSegment(part string, last bool) (patternSegment, string, error) {
	inner, ok := strings.CutPrefix(part, "{")
	inner, closed := strings.CutSuffix(inner, "}")
	name, rest := strings.CutSuffix(inner, "=**")
	switch {
	case !ok || !closed || !isIdentifier(name):
		return patternSegment{}, "", fmt.Errorf("%q: want {name} or {name=**} as a whole segment, of letters, digits and '_'", part)
	case rest && !last:
		return patternSegment{}, "", fmt.Errorf("%q stands for all that remains: only the last segment may", part)
	case rest:
		return patternSegment{kind: segmentRest}, name, nil
	}
	return patternSegment{kind: segmentAny}, name, nil
}

func isIdentifier(s string) bool {
	for i := range len(s) {
		if c := s[i]; !isLetterOrDigit(c) && c != '_' || i == 0 && c >= '0' && c <= '9' {
			return false
		}
	}
	return s != "" && len(s) <= 64
}

// segmentsOf yields the segments of a normal path; a trailing slash makes none.
func segmentsOf(path string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for rest := path; ; {
			seg, after, ok := nextSegment(rest)
			if !ok || !yield(seg) {
				return
			}
			rest = after
		}
	}
}

func nextSegment(rest string) (seg, after string, ok bool) {
	if len(rest) < 2 || rest[0] != '/' {
		return "", "", false
	}
	rest = rest[1:]
	if i := strings.IndexByte(rest, '/'); i >= 0 {
		return rest[:i], rest[i:], true
	}
	return rest, "", true
}

func (p *pattern) matches(path *Path) bool {
	return p.matchesText(path.kept) || path.split != "" && p.matchesText(path.split)
}

func (p *pattern) matchesText(path string) bool {
	if p.regex != nil {
		return p.regex.MatchString(path)
	}
	if path == "" || path[0] != '/' {
		return false
	}
	rest := path
	for _, want := range p.segments {
		if want.kind == segmentRest {
			return true
		}
		seg, after, ok := nextSegment(rest)
		if !ok || want.kind == segmentLiteral && seg != want.literal {
			return false
		}
		rest = after
	}
	_, _, more := nextSegment(rest)
	return !more
}

// sortPatterns puts the most specific first. Segment by segment, a literal goes before the path's
// end, that before {name}, that before all that remains; then regular expressions; of equals, the first written.
func sortPatterns(ps []*pattern) { slices.SortStableFunc(ps, comparePatterns) }

func comparePatterns(a, b *pattern) int {
	if a.regex != nil || b.regex != nil {
		return boolRank(a.regex != nil) - boolRank(b.regex != nil)
	}
	for i := range max(len(a.segments), len(b.segments)) {
		if c := int(a.kindAt(i)) - int(b.kindAt(i)); c != 0 {
			return c
		}
	}
	return 0
}

func (p *pattern) kindAt(i int) segmentKind {
	if i < len(p.segments) {
		return p.segments[i].kind
	}
	return segmentEnd
}

func boolRank(b bool) int {
	if b {
		return 1
	}
	return 0
}
