package policy

import (
	"fmt"
	"strings"
)

// checker collects what is wrong with one document.
type checker struct {
	file  string
	where positions
	errs  Errors
	more  int // errors beyond maxErrors
}

// position is a place in a file, from 1.
type position struct{ line, col int }

// positions are the places of a document's fields by path; nil where it came from no file.
type positions map[string]position

// of returns the place of a field, or of the nearest field above it that is written.
func (p positions) of(field string) position {
	for {
		if at, ok := p[field]; ok || field == "" {
			return at
		}
		field = field[:max(0, strings.LastIndexAny(field, ".["))]
	}
}

func (c *checker) fail(field, reason, remedy string) {
	at := c.where.of(field)
	c.add(&Error{File: c.file, Line: at.line, Col: at.col, Field: field, Reason: reason, Remedy: remedy})
}

func (c *checker) add(e *Error) {
	if len(c.errs) >= maxErrors {
		c.more++
		return
	}
	c.errs = append(c.errs, e)
}

// required reports whether a text is there, and says so if not.
func (c *checker) required(field, value, remedy string) bool {
	if value == "" {
		c.fail(field, "is missing", remedy)
	}
	return value != ""
}

func (c *checker) atMost(field string, n, limit int) {
	if n > limit {
		c.fail(field, fmt.Sprintf("has %d items, at most %d", n, limit), "split the policy, or say it with fewer")
	}
}

// within checks a number's range.
func within[N int32 | int64 | float64](c *checker, field string, v *N, low, high N) {
	if v != nil && !(*v >= low && *v <= high) {
		c.fail(field, fmt.Sprintf("is %v", *v), fmt.Sprintf("want %v to %v", low, high))
	}
}

// oneOf checks an enumeration; the zero value is allowed where optional.
func oneOf[S ~string](c *checker, field string, got S, optional bool, allowed ...S) bool {
	if got == "" {
		if !optional {
			c.fail(field, "is missing", "want "+list(allowed))
		}
		return optional
	}
	for _, a := range allowed {
		if a == got {
			return true
		}
	}
	c.fail(field, fmt.Sprintf("%q is not known", clip(string(got))), suggest(string(got), allowed)+"want "+list(allowed))
	return false
}

func list[S ~string](allowed []S) string {
	texts := make([]string, len(allowed))
	for i := range allowed {
		texts[i] = string(allowed[i])
	}
	if len(texts) < 2 {
		return strings.Join(texts, "")
	}
	return strings.Join(texts[:len(texts)-1], ", ") + " or " + texts[len(texts)-1]
}

// clip keeps a value in an error short.
func clip(s string) string {
	const most = 80
	if len(s) > most {
		return s[:most] + "..."
	}
	return s
}

// suggest returns `did you mean "X"? ` where a known name is near.
func suggest[S ~string](got string, known []S) string {
	best, distance := "", 3
	for _, k := range known {
		d := editDistance(strings.ToLower(got), strings.ToLower(string(k)))
		if d < distance && d < len(k) {
			best, distance = string(k), d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("did you mean %q? ", best)
}

// editDistance is Levenshtein's; long texts are far from everything.
func editDistance(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return 64
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
