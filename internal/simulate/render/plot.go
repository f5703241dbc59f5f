package render

import (
	"fmt"
	"io"
	"math"
	"strings"
)

// Terminal says what a terminal can show. The zero value is what reads everywhere: ASCII in 80 columns.
type Terminal struct {
	Width        int // columns, 72 to 200; 0: 80
	UTF8, Colour bool
}

// The rows that a plot's panels take at most, and the columns that it needs.
const (
	windowRows = 14
	rateRows   = 8
	minWidth   = 72
)

// Plot draws a picture with characters: how full the rate's window was, in percent of the limit, and below it what was
// offered and admitted.
func Plot(w io.Writer, p *Picture, t Terminal) error {
	_, err := io.WriteString(w, strings.Join(plotLines(p, t), "\n")+"\n")
	return err
}

func plotLines(p *Picture, t Terminal) []string {
	width := min(max(t.Width, minWidth), 200)
	if t.Width == 0 {
		width = 80
	}
	g, paint := newGlyphs(t.UTF8), painter(t.Colour)
	// The gutter depends on the scales, and those hardly on the columns: a first look at the whole gives them.
	whole := newCourse(p, 1000, 1000)
	fill := newAxis(max(whole.fullest, 101), windowRows)
	gutter := len(fill.label(fill.steps()))
	columns := width - 2 - 7
	c := newCourse(p, columns, columns)
	rate := newAxis(c.topRate()*1.05, rateRows)
	if wide := len(rate.label(rate.steps() - 1)); wide > gutter {
		gutter = wide
	}
	if columns = width - 2 - gutter; columns != len(c.window) {
		c = newCourse(p, columns, columns)
	}

	out := []string{printable(p.Title)}
	if p.Subtitle != "" {
		out = append(out, printable(p.Subtitle))
	}
	if len(c.window) == 0 {
		return append(out, "(nothing was measured)")
	}
	time := newClock(c.seconds, columns/10)
	top := newPanel(g, fill, columns)
	top.fill(c.window, 100)
	top.line(constant(100, columns), limitLine)
	out = append(out, "", fmt.Sprintf("%s (highest: %s %% at %s)", p.window(), number(c.fullest, 1), time.moment(c.fullestAt)))
	out = append(out, top.rows(gutter, paint)...)

	below := newPanel(g, rate, columns)
	below.fill(c.admitted, math.Inf(1))
	below.dots(c.offered, offeredDots)
	below.line(c.limit, limitLine)
	out = append(out, "", p.rates()+": "+legend(g, &c, paint))
	out = append(out, below.rows(gutter, paint)...)
	return append(out, base(g, time, columns, gutter)...)
}

func legend(g *glyphs, c *course, paint func(string, mark) string) string {
	entry := func(r rune, m mark, what string) string { return paint(string(r), m) + " " + what }
	out := entry(g.fill[len(g.fill)-1], within, "admitted") + "   " + entry(g.dot, offeredDots, "offered")
	if c.limit != nil {
		out += "   " + entry(g.low, limitLine, "limit")
	}
	return out
}

func constant(v float64, n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = v
	}
	return out
}

// painter colours text by its mark, or leaves it.
func painter(colour bool) func(string, mark) string {
	if !colour {
		return func(text string, _ mark) string { return text }
	}
	codes := map[mark]string{within: "34", over: "31", limitLine: "31", offeredDots: "2"}
	return func(text string, m mark) string {
		if codes[m] == "" {
			return text
		}
		return "\x1b[" + codes[m] + "m" + text + "\x1b[0m"
	}
}

// printable keeps a file's texts from writing control characters to a terminal.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			return ' '
		}
		return r
	}, text)
}
