package render

import (
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/weirproxy/weir/internal/simulate/measure"
)

// The picture's measures, px.
const (
	svgWidth, svgHeight = 860.0, 560.0
	plotLeft, plotRight = 74.0, 840.0
	rateTop, rateBottom = 88.0, 290.0
	fillTop, fillBottom = 330.0, 508.0
	drawnBins           = 240
)

// svgStyle suits a light page and a dark one.
const svgStyle = `
.paper{fill:#fff}.grid{stroke:#e3e6ea;stroke-width:1}.frame{stroke:#8a929c;stroke-width:1;fill:none}
text{fill:#24292f;font:12px system-ui,-apple-system,"Segoe UI",Helvetica,Arial,sans-serif}
.title{font-size:16px;font-weight:600}.quiet{fill:#57606a}.num{text-anchor:end}.mid{text-anchor:middle}
.line{fill:none;stroke-width:1.5;stroke-linejoin:round}
.offered{stroke:#8a929c;stroke-width:1.2}.admitted{stroke:#0b62c4}.exact{stroke:#1a7f37;stroke-dasharray:5 3}.limit{stroke:#cf222e;stroke-width:1.2}
.content{fill:#0b62c4;fill-opacity:.16}.excess{fill:#cf222e;fill-opacity:.55}
@media(prefers-color-scheme:dark){.paper{fill:#0d1117}.grid{stroke:#262c34}.frame{stroke:#6e7681}text{fill:#e6edf3}.quiet{fill:#9aa4af}
.offered{stroke:#8b949e}.admitted{stroke:#58a6ff}.exact{stroke:#3fb950}.limit{stroke:#ff7b72}.content{fill:#58a6ff;fill-opacity:.22}.excess{fill:#ff7b72;fill-opacity:.7}}
`

// SVG draws a picture for a document: above, what was offered, what was admitted, and what an exact limiter would have
// admitted; below, how full the rate's window was. It stands alone: no font, script or style from elsewhere.
func SVG(w io.Writer, p *Picture) error {
	c := newCourse(p, svgBins(p.Series), 2*drawnBins)
	time := newClock(c.seconds, 10)
	d := &drawing{}
	d.f(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %v %v" width="%v" height="%v" role="img">`,
		svgWidth, svgHeight, svgWidth, svgHeight)
	d.f("<title>%s</title>", escape(p.Title))
	d.f("<desc>%s</desc>", escape(description(p, &c, time)))
	d.f("<style>%s</style>", svgStyle)
	d.f(`<rect class="paper" width="%v" height="%v"/>`, svgWidth, svgHeight)
	d.text(plotLeft, 26, "title", p.Title)
	d.text(plotLeft, 46, "quiet", p.Subtitle)
	if len(c.window) == 0 {
		d.text(plotLeft, rateTop, "", "Nothing was measured.")
	} else {
		d.rates(p, &c, time)
		d.content(p, &c, time)
	}
	d.f("</svg>")
	_, err := io.WriteString(w, d.b.String())
	return err
}

// svgBins is coarse enough that chance does not hide the course: some 40 of the limit's units a bin.
func svgBins(s *measure.Series) int {
	if s == nil {
		return drawnBins
	}
	units := mean(s.Limit) * s.Bin.Seconds() * float64(len(s.Limit))
	return int(min(max(units/40, 60), drawnBins))
}

func description(p *Picture, c *course, time clock) string {
	return fmt.Sprintf("%s Two charts over %s: units a second offered, admitted, admitted by an exact limiter, and the limit; "+
		"and the %s, at most %s after %s.",
		strings.TrimSpace(p.Subtitle+"."), time.moment(c.seconds), p.window(), number(c.fullest, 1), time.moment(c.fullestAt))
}

// drawing is an SVG file in the making.
type drawing struct{ b strings.Builder }

func (d *drawing) f(format string, args ...any) { fmt.Fprintf(&d.b, format+"\n", args...) }

func (d *drawing) text(x, y float64, class, text string) {
	if text != "" {
		d.f(`<text class="%s" x="%s" y="%s">%s</text>`, class, px(x), px(y), escape(text))
	}
}

// plane is where a chart lies, and its scale.
type plane struct {
	top, bottom float64
	axis        axis
}

func (p plane) y(v float64) float64 {
	return p.bottom - (p.bottom-p.top)*min(clean(v)/p.axis.top, 1)
}

// x is where bin i of n begins.
func x(i, n int) float64 { return plotLeft + (plotRight-plotLeft)*float64(i)/float64(n) }

func (d *drawing) rates(pic *Picture, c *course, time clock) {
	p := plane{rateTop, rateBottom, newAxis(c.topRate()*1.02, 6)}
	d.grid(p, time, pic.rates())
	d.legend()
	d.curve(p, c.offered, "offered")
	d.steps(p, c.limit, "limit")
	d.curve(p, c.admitted, "admitted")
	d.curve(p, c.exact, "exact")
}

func (d *drawing) content(pic *Picture, c *course, time clock) {
	p := plane{fillTop, fillBottom, newAxis(max(c.fullest*1.02, 110), 7)}
	d.grid(p, time, pic.window())
	d.area(p, c.window, 0, 100, "content")
	d.area(p, c.window, 100, math.Inf(1), "excess")
	d.steps(p, []float64{100}, "limit")
	d.curve(p, c.window, "admitted")
	for _, t := range time.ticks() {
		d.text(plotLeft+(plotRight-plotLeft)*min(t/time.end, 1), fillBottom+18, "mid quiet", time.label(t))
	}
	d.text((plotLeft+plotRight)/2, fillBottom+38, "mid quiet", "time, "+time.unit)
}

// grid draws the lines at ticks, the values' labels and what they are.
func (d *drawing) grid(p plane, time clock, what string) {
	for i := range p.axis.steps() + 1 {
		y := p.y(float64(i) * p.axis.step)
		d.f(`<path class="grid" d="M%s %sH%s"/>`, px(plotLeft), px(y), px(plotRight))
		d.text(plotLeft-8, y+4, "num quiet", p.axis.label(i))
	}
	for _, t := range time.ticks() {
		at := plotLeft + (plotRight-plotLeft)*min(t/time.end, 1)
		d.f(`<path class="grid" d="M%s %sV%s"/>`, px(at), px(p.top), px(p.bottom))
	}
	d.f(`<path class="frame" d="M%s %sV%sH%s"/>`, px(plotLeft), px(p.top), px(p.bottom), px(plotRight))
	d.text(plotLeft, p.top-10, "quiet", what)
}

func (d *drawing) legend() {
	at := plotRight
	for _, e := range []struct{ class, name string }{
		{"limit", "limit"}, {"exact", "exact limiter"}, {"admitted", "admitted"}, {"offered", "offered"},
	} {
		at -= 6.4 * float64(len(e.name))
		d.text(at, rateTop-10, "", e.name)
		d.f(`<path class="line %s" d="M%s %sh22"/>`, e.class, px(at-28), px(rateTop-14))
		at -= 44
	}
}

// curve joins the middles of bins.
func (d *drawing) curve(p plane, values []float64, class string) {
	var b strings.Builder
	for i, v := range values {
		fmt.Fprintf(&b, "%s%s %s", letter(i == 0, "M", "L"), px(x(2*i+1, 2*len(values))), px(p.y(v)))
	}
	if len(values) > 0 {
		d.f(`<path class="line %s" d="%s"/>`, class, b.String())
	}
}

// steps draws each bin level, and only where it changes.
func (d *drawing) steps(p plane, values []float64, class string) {
	var b strings.Builder
	last := math.NaN()
	for i, v := range values {
		if v != last {
			at, y := px(x(i, len(values))), px(p.y(v))
			b.WriteString(letter(i == 0, "M"+at+" "+y, "H"+at+"V"+y))
			last = v
		}
	}
	if len(values) > 0 {
		d.f(`<path class="line %s" d="%sH%s"/>`, class, b.String(), px(plotRight))
	}
}

// area fills between from and the values, as far as to.
func (d *drawing) area(p plane, values []float64, from, to float64, class string) {
	var b strings.Builder
	drawn := false
	fmt.Fprintf(&b, "M%s %s", px(x(1, 2*len(values))), px(p.y(from)))
	for i, v := range values {
		v = min(max(v, from), to)
		drawn = drawn || v > from
		fmt.Fprintf(&b, "L%s %s", px(x(2*i+1, 2*len(values))), px(p.y(v)))
	}
	if drawn {
		d.f(`<path class="%s" d="%sL%s %sZ"/>`, class, b.String(), px(x(2*len(values)-1, 2*len(values))), px(p.y(from)))
	}
}

func letter(first bool, a, b string) string {
	if first {
		return a
	}
	return b
}

// px is a coordinate to a tenth of a pixel.
func px(v float64) string {
	return strconv.FormatFloat(math.Round(v*10)/10, 'f', -1, 64)
}

// escape makes any text one of XML; what XML cannot hold becomes U+FFFD.
func escape(text string) string {
	var b strings.Builder
	if err := xml.EscapeText(&b, []byte(printable(text))); err != nil {
		return "" // a builder does not fail
	}
	return b.String()
}
