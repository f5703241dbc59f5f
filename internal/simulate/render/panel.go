package render

import (
	"math"
	"strings"
)

// mark is what a cell of a terminal's plot belongs to.
type mark uint8

const (
	blank mark = iota
	within
	over
	limitLine
	offeredDots
)

// glyphs are the characters of a plot.
type glyphs struct {
	fill, over         []rune // from nearly empty to full
	low, mid, dot      rune   // a line at a row's bottom, in its middle; a dot
	side, corner, base rune   // of the axes
	tick, label        rune
}

func newGlyphs(utf8 bool) *glyphs {
	if utf8 {
		eighths := []rune(" ▁▂▃▄▅▆▇█")
		return &glyphs{eighths, eighths, '▁', '─', '·', '│', '└', '─', '┴', '┤'}
	}
	return &glyphs{[]rune(" ::##"), []rune(" !!!!"), '_', '-', '.', '|', '+', '-', '+', '|'}
}

type cell struct {
	r    rune
	mark mark
}

// panel is a grid of characters over one scale; row 0 is the lowest.
type panel struct {
	*glyphs
	axis  axis
	cells [][]cell
}

func newPanel(g *glyphs, a axis, columns int) *panel {
	p := &panel{glyphs: g, axis: a}
	for range a.steps() {
		p.cells = append(p.cells, make([]cell, columns))
	}
	return p
}

// fill draws columns up to values, as over from limit on.
func (p *panel) fill(values []float64, limit float64) {
	for x, v := range values {
		for y := range p.cells {
			bottom := float64(y) * p.axis.step
			m, shades := within, p.glyphs.fill
			if bottom >= limit-1e-9*p.axis.step {
				m, shades = over, p.glyphs.over
			}
			part := min(max((v-bottom)/p.axis.step, 0), 1)
			if i := int(part * float64(len(shades)-1)); i > 0 {
				p.cells[y][x] = cell{shades[i], m}
			}
		}
	}
}

// line draws values where nothing is yet.
func (p *panel) line(values []float64, m mark) {
	for x, v := range values {
		half := int(math.Round(clean(v) / p.axis.step * 2))
		y, r := half/2, p.low
		if half%2 == 1 {
			r = p.mid
		}
		p.set(x, y, cell{r, m})
	}
}

// dots draws values above 0 where nothing is yet.
func (p *panel) dots(values []float64, m mark) {
	for x, v := range values {
		if v > 0 {
			p.set(x, min(int(v/p.axis.step), len(p.cells)-1), cell{p.dot, m})
		}
	}
}

func (p *panel) set(x, y int, c cell) {
	if y < len(p.cells) && p.cells[y][x].mark == blank {
		p.cells[y][x] = c
	}
}

// rows are the panel's lines from above, with labels in a gutter. A label is the value at its row's bottom.
func (p *panel) rows(gutter int, paint func(string, mark) string) []string {
	every := (len(p.cells) + 7) / 8
	var out []string
	for y := len(p.cells) - 1; y >= 0; y-- {
		label, side := "", p.side
		if y%every == 0 {
			label, side = p.axis.label(y), p.glyphs.label
		}
		out = append(out, strings.TrimRight(pad(label, gutter)+" "+string(side)+p.row(y, paint), " "))
	}
	return out
}

// row paints the cells of a row, those of one mark together.
func (p *panel) row(y int, paint func(string, mark) string) string {
	var b strings.Builder
	cells := p.cells[y]
	for from := 0; from < len(cells); {
		to, text := from, ""
		for ; to < len(cells) && cells[to].mark == cells[from].mark; to++ {
			text += string(max(cells[to].r, ' '))
		}
		b.WriteString(paint(text, cells[from].mark))
		from = to
	}
	return b.String()
}

// base are the two lines of the time axis below panels.
func base(g *glyphs, c clock, columns, gutter int) []string {
	line := []rune(strings.Repeat(string(g.base), columns))
	labels := []rune(strings.Repeat(" ", columns))
	free := 0
	for i, t := range c.ticks() {
		x := min(int(t/c.end*float64(columns)), columns-1)
		text := c.label(t)
		if i == 0 {
			text += " " + c.unit
		}
		if x < free {
			continue
		}
		line[x] = g.tick
		copy(labels[min(x, columns-len(text)):], []rune(text))
		free = x + len(text) + 2
	}
	return []string{
		pad("", gutter) + " " + string(g.corner) + string(line),
		strings.TrimRight(pad("", gutter+2)+string(labels), " "),
	}
}

// pad puts text to the right of a field.
func pad(text string, width int) string {
	return strings.Repeat(" ", max(width-len([]rune(text)), 0)) + text
}
