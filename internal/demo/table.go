package demo

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// row is one pod's last second.
type row struct {
	name string
	counts
	age   time.Duration // of the newest decision header; negative: none
	where string        // for curl: the Envoy's address, "" without one
}

// frame is what the table shows.
type frame struct {
	title  string
	at     time.Duration // since the load began
	rows   []row
	all    counts
	window int // admitted in the newest window
	watched
	failed    int
	lastErr   error
	unchecked int64
	hints     []string
}

// lines are the table for a terminal.
func (f *frame) lines() []string {
	out := []string{
		fmt.Sprintf("weir demo · %s · %s", f.title, f.at.Truncate(time.Second)), "",
		fmt.Sprintf("%-8s %10s %11s %10s %9s %14s", "pod", "offered/s", "admitted/s", "refused/s", "refused", "decision age"),
	}
	for _, r := range f.rows {
		out = append(out, fmt.Sprintf("%-8s %10d %11d %10d %8s%% %14s",
			r.name, r.offered, r.admitted, r.refused, percent(r.refused, r.offered), ageText(r.age)))
	}
	out = append(out, fmt.Sprintf("%-8s %10d %11d %10d %8s%%", "all", f.all.offered, f.all.admitted, f.all.refused,
		percent(f.all.refused, f.all.offered)), "")
	out = append(out, fmt.Sprintf("admitted in the last %s: %d of %d  %s", short(f.watched.window), f.window, f.limit, bar(f.window, f.limit)))
	if f.failed > 0 {
		out = append(out, fmt.Sprintf("%d requests got no answer; the newest reason: %v", f.failed, f.lastErr))
	}
	if f.unchecked > 0 {
		out = append(out, fmt.Sprintf("%d requests were let through by Envoy, whose sidecar did not answer in time (is this machine overloaded?)", f.unchecked))
	}
	return append(append(out, ""), f.hints...)
}

// line is the same in one line, for what is no terminal.
func (f *frame) line() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%5s  ", f.at.Truncate(time.Second))
	for _, r := range f.rows {
		fmt.Fprintf(&b, "%s %d offered %d admitted %d refused (age %s) · ", r.name, r.offered, r.admitted, r.refused, ageText(r.age))
	}
	fmt.Fprintf(&b, "last %s: %d of %d", short(f.watched.window), f.window, f.limit)
	if f.failed > 0 {
		fmt.Fprintf(&b, " · %d without an answer: %v", f.failed, f.lastErr)
	}
	if f.unchecked > 0 {
		fmt.Fprintf(&b, " · %d let through by Envoy unchecked", f.unchecked)
	}
	return b.String()
}

func percent(part, whole int) string {
	if whole == 0 {
		return "0"
	}
	return fmt.Sprintf("%.0f", 100*float64(part)/float64(whole))
}

func ageText(d time.Duration) string {
	if d < 0 {
		return "none yet"
	}
	return fmt.Sprintf("%d ms", d.Milliseconds())
}

const barWidth = 40

// bar fills up to the limit; what is over it is marked.
func bar(n, limit int) string {
	filled := 0
	if limit > 0 {
		filled = min(n*barWidth/limit, barWidth*3/2)
	}
	within := min(filled, barWidth)
	return "[" + strings.Repeat("#", within) + strings.Repeat(".", barWidth-within) + "]" + strings.Repeat("!", filled-within)
}

// screen draws frames: over each other on a terminal, below each other elsewhere.
type screen struct {
	out      io.Writer
	terminal bool
	drawn    int // lines of the frame on the terminal
}

func (s *screen) draw(f *frame) {
	if !s.terminal {
		fmt.Fprintln(s.out, f.line())
		return
	}
	var b strings.Builder
	if s.drawn > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", s.drawn)
	}
	lines := f.lines()
	for _, l := range lines {
		b.WriteString(l + "\x1b[K\n")
	}
	b.WriteString("\x1b[J")
	s.drawn = len(lines)
	fmt.Fprint(s.out, b.String())
}
