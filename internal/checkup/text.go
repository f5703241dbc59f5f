package checkup

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

const (
	leastText = 30 // columns that a text gets however narrow the terminal is
	fixMark   = "fix: "
)

// Lines are the report as a table for people: a line a finding, its fix below it, broken at width columns; 0: not
// broken, as for a file or a pipe.
func (r *Report) Lines(width int) []string {
	levels, names := 0, 0
	for _, f := range r.Findings {
		levels, names = max(levels, len(f.Level)), max(names, len(f.Check))
	}
	indent := levels + 2 + names + 2
	room := 0
	if width > 0 {
		room = max(width-indent, leastText)
	}
	var out []string
	for _, f := range r.Findings {
		first := fmt.Sprintf("%-*s  %-*s  ", levels, f.Level, names, f.Check)
		out = append(out, hang(first, f.Text, room)...)
		if f.Fix != "" {
			out = append(out, hang(strings.Repeat(" ", indent), fixMark+f.Fix, room)...)
		}
	}
	return append(out, "", r.summary())
}

func (r *Report) summary() string {
	parts := []string{fmt.Sprintf("%d ok", r.OK)}
	if r.Warnings > 0 {
		parts = append(parts, Many(r.Warnings, "warning"))
	}
	if r.Failed > 0 {
		parts = append(parts, fmt.Sprintf("%d failed", r.Failed))
	}
	switch {
	case r.Denied > 0:
		parts = append(parts, fmt.Sprintf("%d skipped (%d for lack of rights)", r.Skipped, r.Denied))
	case r.Skipped > 0:
		parts = append(parts, fmt.Sprintf("%d skipped", r.Skipped))
	}
	return strings.Join(parts, ", ")
}

// hang writes text after first, and further lines below its beginning; room 0 or less: on one line.
func hang(first, text string, room int) []string {
	if room <= 0 {
		return []string{first + text}
	}
	rest := strings.Repeat(" ", utf8.RuneCountInString(first))
	var out []string
	for _, line := range wrap(text, room) {
		out = append(out, first+line)
		first = rest
	}
	return out
}

// wrap breaks text between words into lines of room characters; a word that is longer has a line of its own.
func wrap(text string, room int) []string {
	var out []string
	line, used := "", 0
	for _, word := range strings.Fields(text) {
		n := utf8.RuneCountInString(word)
		if line != "" && used+1+n > room {
			out, line, used = append(out, line), "", 0
		}
		if line != "" {
			line, used = line+" ", used+1
		}
		line, used = line+word, used+n
	}
	return append(out, line)
}
