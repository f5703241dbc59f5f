package main

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/weirproxy/weir/internal/simulate/measure"
)

// drawing is a picture: a panel for each design, all of one scale.
type drawing struct {
	title, note string
	top         float64 // of the scale, in limits
	length      time.Duration
	away        []measure.Span
	panels      []panel
}

// panel is one design's run: how full its window was in each bin, in limits.
type panel struct {
	name, note string
	fills      []float64
}

// Lengths in the picture.
const (
	across      = 3   // panels in a row
	panelWidth  = 244 // of the plot itself
	panelHeight = 130
	leftMargin  = 50
	gapX, gapY  = 36, 66
	headHeight  = 92
)

const style = `
text{font:12px system-ui,sans-serif;fill:#1f2328}.title{font-size:15px;font-weight:600}.name{font-weight:600}.soft{fill:#59636e;font-size:11px}
.ground{fill:#fff}.grid{stroke:#d1d9e0}.limit{stroke:#a40e26;stroke-width:1.5;stroke-dasharray:5 3}.fill{fill:#54aeff}.over{fill:#e5534b}
.away{fill:#eac54f;opacity:.35}
@media(prefers-color-scheme:dark){text{fill:#f0f6fc}.soft{fill:#9198a1}.ground{fill:#0d1117}.grid{stroke:#3d444d}.limit{stroke:#ffa198}
.fill{fill:#316dca}.over{fill:#f47067}.away{fill:#9e6a03}}
`

// write draws it. The same drawing gives the same bytes.
func (d *drawing) write(b *bytes.Buffer) {
	rows := (len(d.panels) + across - 1) / across
	width := leftMargin + across*(panelWidth+gapX)
	height := headHeight + rows*(panelHeight+gapY) - 40
	fmt.Fprintf(b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img">`+"\n", width, height, width, height)
	fmt.Fprintf(b, "<title>%s</title>\n<style>%s</style>\n", escape(d.title), style)
	fmt.Fprintf(b, `<rect class="ground" width="%d" height="%d"/>`+"\n", width, height)
	fmt.Fprintf(b, `<text class="title" x="%d" y="26">%s</text>`+"\n", leftMargin, escape(d.title))
	fmt.Fprintf(b, `<text class="soft" x="%d" y="44">%s</text>`+"\n", leftMargin, escape(d.legend()))
	for i := range d.panels {
		x, y := leftMargin+i%across*(panelWidth+gapX), headHeight+i/across*(panelHeight+gapY)
		fmt.Fprintf(b, `<g transform="translate(%d %d)">`+"\n", x, y)
		d.panel(b, i)
		b.WriteString("</g>\n")
	}
	b.WriteString("</svg>\n")
}

func (d *drawing) legend() string {
	s := d.note + "; dashed: the limit, red: above it"
	if len(d.away) > 0 {
		s += "; shaded: the aggregator (of the central designs the store) is away"
	}
	return s
}

func (d *drawing) panel(b *bytes.Buffer, i int) {
	p := &d.panels[i]
	fmt.Fprintf(b, `<text class="name" y="-24">%s</text><text class="soft" y="-9">%s</text>`+"\n", escape(p.name), escape(p.note))
	for _, a := range d.away {
		fmt.Fprintf(b, `<rect class="away" x="%.1f" width="%.1f" height="%d"/>`+"\n", d.x(a.From), d.x(a.To)-d.x(a.From), panelHeight)
	}
	d.axes(b, i%across == 0)
	limit := d.y(1)
	fmt.Fprintf(b, `<defs><path id="shape%d" d="%s"/><clipPath id="over%d"><rect width="%d" height="%.1f"/></clipPath></defs>`+"\n",
		i, d.shape(p.fills), i, panelWidth, limit)
	fmt.Fprintf(b, `<use class="fill" href="#shape%d"/><use class="over" href="#shape%d" clip-path="url(#over%d)"/>`+"\n", i, i, i)
	fmt.Fprintf(b, `<line class="limit" x2="%d" y1="%.1f" y2="%.1f"/>`+"\n", panelWidth, limit, limit)
	d.peak(b, p)
}

// axes with their grid; the scale's figures stand at the first panel of a row.
func (d *drawing) axes(b *bytes.Buffer, figures bool) {
	for fill := 0.0; fill <= d.top; fill += 0.5 {
		y := d.y(fill)
		fmt.Fprintf(b, `<line class="grid" x2="%d" y1="%.1f" y2="%.1f"/>`, panelWidth, y, y)
		if figures && fill == math.Trunc(fill) {
			fmt.Fprintf(b, `<text class="soft" x="-6" y="%.1f" text-anchor="end">%.0f %%</text>`, y+4, 100*fill)
		}
	}
	every := d.every()
	for at := time.Duration(0); at <= d.length; at += every {
		fmt.Fprintf(b, `<text class="soft" x="%.1f" y="%d" text-anchor="middle">%g s</text>`, d.x(at), panelHeight+15, at.Seconds())
	}
	b.WriteByte('\n')
}

// every is the time between two ticks: about five of them.
func (d *drawing) every() time.Duration {
	for _, seconds := range []int{1, 2, 5, 10, 20, 30, 60} {
		if every := time.Duration(seconds) * time.Second; d.length <= 5*every {
			return every
		}
	}
	return d.length / 4
}

// peak says where the scale ends below it.
func (d *drawing) peak(b *bytes.Buffer, p *panel) {
	if slices.Max(p.fills) > d.top {
		fmt.Fprintf(b, `<text class="soft" x="%d" y="-9" text-anchor="end">cut off</text>`+"\n", panelWidth)
	}
}

// shape is the outline of the filled part.
func (d *drawing) shape(fills []float64) string {
	var b bytes.Buffer
	fmt.Fprintf(&b, "M0 %d", panelHeight)
	for i, f := range fills {
		fmt.Fprintf(&b, "L%.1f %.1f", float64(i)*panelWidth/float64(len(fills)-1), d.y(min(f, d.top)))
	}
	fmt.Fprintf(&b, "L%d %dZ", panelWidth, panelHeight)
	return b.String()
}

func (d *drawing) x(at time.Duration) float64 { return panelWidth * at.Seconds() / d.length.Seconds() }
func (d *drawing) y(fill float64) float64     { return panelHeight * (1 - fill/d.top) }

func escape(s string) string {
	var b bytes.Buffer
	_ = xml.EscapeText(&b, []byte(s)) // a buffer takes everything
	return b.String()
}
