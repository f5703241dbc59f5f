package checkup

import (
	"fmt"
	"slices"
	"strings"
)

// Level says how bad a finding is.
type Level string

// The levels, from the best to the worst.
const (
	// OK: it is in order.
	OK Level = "ok"
	// Skipped: it could not be looked at, or is not there to be looked at; the text says why.
	Skipped Level = "skipped"
	// Warning: quotas hold, but something is not as it was meant, or will end badly.
	Warning Level = "warning"
	// Failed: some quota is not enforced as its policy says, or something that weir needs is broken.
	Failed Level = "failed"
)

// Finding is one thing that a check found. The JSON names are stable.
type Finding struct {
	// Check is the name of the check; Run sets it.
	Check string `json:"check"`
	Level Level  `json:"level"`
	// Text says what is so, for a person; one line.
	Text string `json:"finding"`
	// Fix says what to do; "" where there is nothing to do.
	Fix string `json:"fix,omitempty"`
	// Denied: it is there, or may be, and this user has no right to look at it. Its level is Skipped.
	Denied bool `json:"denied,omitempty"`
}

// Okay is a finding that something is in order.
func Okay(format string, args ...any) Finding {
	return Finding{Level: OK, Text: fmt.Sprintf(format, args...)}
}

// Skip is a finding that something was not looked at, and what would have to be done to look at it.
func Skip(fix, format string, args ...any) Finding {
	return Finding{Level: Skipped, Text: fmt.Sprintf(format, args...), Fix: fix}
}

// Deny is a finding that something was not looked at for lack of a right, and how that is given.
func Deny(fix, format string, args ...any) Finding {
	f := Skip(fix, format, args...)
	f.Denied = true
	return f
}

// Warn is a finding that asks for attention.
func Warn(fix, format string, args ...any) Finding {
	return Finding{Level: Warning, Text: fmt.Sprintf(format, args...), Fix: fix}
}

// Fail is a finding that something is broken.
func Fail(fix, format string, args ...any) Finding {
	return Finding{Level: Failed, Text: fmt.Sprintf(format, args...), Fix: fix}
}

// OrOkay returns findings, or one that all is in order where there are none.
func OrOkay(findings []Finding, format string, args ...any) []Finding {
	if len(findings) > 0 {
		return findings
	}
	return []Finding{Okay(format, args...)}
}

const (
	maxNamed = 5
	maxText  = 400
)

// Names joins the first names in their order, and says how many more there are.
func Names(names []string) string {
	sorted := slices.Sorted(slices.Values(names))
	if len(sorted) <= maxNamed {
		return strings.Join(sorted, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(sorted[:maxNamed], ", "), len(sorted)-maxNamed)
}

// Many is a number with its noun, in the plural unless it is 1.
func Many(n int, noun string) string {
	switch {
	case n == 1:
		return "1 " + noun
	case strings.HasSuffix(noun, "y"):
		return fmt.Sprintf("%d %sies", n, strings.TrimSuffix(noun, "y"))
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// OneLine is text without line breaks and other control characters, cut where it is very long: what others wrote may
// hold anything.
func OneLine(text string) string {
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
	if len(text) > maxText {
		text = strings.ToValidUTF8(text[:maxText], "") + "…"
	}
	return text
}
