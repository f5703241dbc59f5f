package policy

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// Error is one thing wrong with a document. File is "" and Line 0 where a document came from no file.
type Error struct {
	File      string
	Line, Col int
	// Field is the path of the field, such as spec.limits[1].rates[0].window; "" for the whole document.
	Field  string
	Reason string
	// Remedy says what to do; "" where the reason says it.
	Remedy string
}

// Error writes file:line:col: field: reason; remedy.
func (e *Error) Error() string {
	var b strings.Builder
	if e.File != "" {
		b.WriteString(e.File + ":")
	}
	if e.Line > 0 {
		b.WriteString(strconv.Itoa(e.Line) + ":" + strconv.Itoa(e.Col) + ":")
	}
	if b.Len() > 0 {
		b.WriteByte(' ')
	}
	if e.Field != "" {
		b.WriteString(e.Field + ": ")
	}
	b.WriteString(e.Reason)
	if e.Remedy != "" {
		b.WriteString("; " + e.Remedy)
	}
	return b.String()
}

// Errors is everything wrong with a file or document, sorted by place.
type Errors []*Error

// Error writes one error a line.
func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i := range e {
		lines[i] = e[i].Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap gives errors.As each of them.
func (e Errors) Unwrap() []error {
	out := make([]error, len(e))
	for i := range e {
		out[i] = e[i]
	}
	return out
}

func (e Errors) sort() {
	slices.SortStableFunc(e, func(a, b *Error) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Col, b.Col))
	})
}
