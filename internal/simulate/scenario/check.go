package scenario

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/weirproxy/weir/internal/configfile"
	"github.com/weirproxy/weir/internal/policy"
)

// maxErrors is how many are told of a file.
const maxErrors = 100

// position is a place in a file, from 1; or the assignment that put a field there.
type position struct {
	line, col  int
	assignment string
}

// checker collects what is wrong with one file.
type checker struct {
	file   string
	where  map[string]position // of each field that is written
	unread []string            // fields that could not be read
	errs   policy.Errors
	more   bool
}

// has reports whether a field is written.
func (c *checker) has(field string) bool {
	_, ok := c.where[field]
	return ok
}

// of is the place of a field, or of the nearest field above it that is written.
func (c *checker) of(field string) position {
	for {
		if at, ok := c.where[field]; ok || field == "" {
			return at
		}
		field = field[:max(0, strings.LastIndexAny(field, ".["))]
	}
}

// fail says what is wrong with a field, unless reading has said so already.
func (c *checker) fail(field, reason, remedy string) {
	if !c.full() && !c.missed(field) {
		c.add(c.of(field), field, reason, remedy)
	}
}

// reject says why a field cannot be read.
func (c *checker) reject(field, reason, remedy string) {
	if !c.full() {
		c.add(c.of(field), field, reason, remedy)
		c.unread = append(c.unread, field)
	}
}

func (c *checker) add(place position, field, reason, remedy string) {
	e := &policy.Error{File: c.file, Line: place.line, Col: place.col, Field: field, Reason: reason, Remedy: remedy}
	if place.assignment != "" {
		e.File += " with " + place.assignment
	}
	c.errs = append(c.errs, e)
}

func (c *checker) full() bool {
	c.more = c.more || len(c.errs) >= maxErrors
	return c.more
}

// missed reports whether a field, or one above it, could not be read.
func (c *checker) missed(field string) bool {
	for _, u := range c.unread {
		if rest, below := strings.CutPrefix(field, u); below && (u == "" || rest == "" || rest[0] == '.' || rest[0] == '[') {
			return true
		}
	}
	return false
}

// err is everything wrong, sorted by place; nil if nothing is.
func (c *checker) err() error {
	if len(c.errs) == 0 {
		return nil
	}
	slices.SortStableFunc(c.errs, func(a, b *policy.Error) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Col, b.Col))
	})
	if c.more {
		c.errs = append(c.errs, &policy.Error{File: c.file, Reason: "has more errors than these", Remedy: "mend these first"})
	}
	return c.errs
}

// required reports whether a field is written, and says so if not.
func (c *checker) required(field, remedy string) bool {
	if !c.has(field) {
		c.fail(field, "is missing", remedy)
		return false
	}
	return true
}

// within checks a number's range.
func within[N int | int64 | uint64 | float64](c *checker, field string, v, low, high N) bool {
	if v >= low && v <= high {
		return true
	}
	c.fail(field, fmt.Sprintf("is %v", v), fmt.Sprintf("want %v to %v", plain(low), plain(high)))
	return false
}

// plain is a bound as a person writes it.
func plain(v any) string {
	if f, ok := v.(float64); ok && f == math.Trunc(f) {
		return fmt.Sprintf("%.0f", f)
	}
	return fmt.Sprint(v)
}

// span checks a duration's range.
func (c *checker) span(field string, d, low, high time.Duration) bool {
	if d >= low && d <= high {
		return true
	}
	c.fail(field, "is "+short(d), "want "+short(low)+" to "+short(high))
	return false
}

// atMostTimes keeps what happens each so often in a run from never ending.
func (c *checker) atMostTimes(field string, run, each time.Duration, n int) {
	const most = 1_000_000
	if each > 0 && float64(run)/float64(each)*float64(n) > most {
		c.fail(field, fmt.Sprintf("makes more than %d changes in a run of %s", most, short(run)), "lengthen it, or shorten duration")
	}
}

// text checks a text that people read: its length, and that it is one line.
func (c *checker) text(field, s string, most int) {
	if len(s) > most {
		c.fail(field, fmt.Sprintf("has %d bytes, at most %d", len(s), most), "shorten it")
	}
	if strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		c.fail(field, "has a control character", "write it in one line")
	}
}

// oneOf checks an enumeration.
func oneOf[S ~string](c *checker, field string, got S, allowed ...S) bool {
	if slices.Contains(allowed, got) {
		return true
	}
	texts := make([]string, len(allowed))
	for i := range allowed {
		texts[i] = string(allowed[i])
	}
	c.fail(field, fmt.Sprintf("%q is not known", clip(string(got))), nearest(string(got), texts)+"want "+list(texts))
	return false
}

func list(texts []string) string {
	last := len(texts) - 1
	if last < 1 {
		return strings.Join(texts, "")
	}
	return strings.Join(texts[:last], ", ") + " or " + texts[last]
}

// nearest returns `did you mean x? ` where a known name is near.
func nearest(got string, known []string) string {
	if near, ok := configfile.Nearest(got, known); ok {
		return fmt.Sprintf("did you mean %s? ", near)
	}
	return ""
}

// clip keeps a value in an error short.
func clip(s string) string {
	const most = 80
	if len(s) > most {
		return s[:most] + "..."
	}
	return s
}

// short writes 1m for what time.Duration prints as 1m0s.
func short(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
