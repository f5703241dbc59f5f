package render

import (
	"math"

	"github.com/weirproxy/weir/internal/simulate/measure"
)

// Picture is what a plot shows: the course of one rate in one run.
type Picture struct {
	Title    string // one line
	Subtitle string // what was measured; may be empty
	Counters int    // whose course it is together; of several the window is the fullest one's
	Series   *measure.Series
}

// window says what the chart of the window shows, percent.
func (p *Picture) window() string {
	if p.Counters > 1 {
		return "window content of the fullest counter, % of its limit"
	}
	return "window content, % of the limit"
}

// rates says what the chart of rates shows.
func (p *Picture) rates() string {
	if p.Counters > 1 {
		return "units/s, all counters together"
	}
	return "units/s"
}

// course is a picture's series, cleaned, in as many bins as a plot has room for. Window is percent of the limit.
type course struct {
	limit, offered, admitted, exact []float64
	window                          []float64
	seconds                         float64 // its whole length
	fullest, fullestAt              float64 // percent; seconds
}

// newCourse resamples a picture: rates to their mean over each of rateBins, the window to its fullest in each of
// windowBins. What several counters may admit together is no limit, and is left out.
func newCourse(p *Picture, rateBins, windowBins int) course {
	s := p.Series
	if s == nil {
		s = &measure.Series{}
	}
	c := course{
		limit:    resample(s.Limit, rateBins, mean),
		offered:  resample(s.Offered, rateBins, mean),
		admitted: resample(s.Admitted, rateBins, mean),
		exact:    resample(s.Exact, rateBins, mean),
		window:   resample(s.Window, windowBins, highest),
		seconds:  clean(s.Bin.Seconds() * float64(len(s.Admitted))),
	}
	if p.Counters > 1 {
		c.limit = nil
	}
	for i := range c.window {
		c.window[i] = clean(c.window[i] * 100)
	}
	for i, w := range s.Window {
		if w = clean(100 * w); w > c.fullest {
			c.fullest, c.fullestAt = w, clean(s.Bin.Seconds()*float64(i))
		}
	}
	return c
}

// topRate is the highest of the rates.
func (c *course) topRate() float64 {
	return max(highest(c.limit), highest(c.offered), highest(c.admitted), highest(c.exact))
}

// resample gives n values that stand for all of them; fewer values than n are repeated.
func resample(values []float64, n int, of func([]float64) float64) []float64 {
	if len(values) == 0 {
		return nil
	}
	out := make([]float64, n)
	for i := range out {
		from := i * len(values) / n
		to := max((i+1)*len(values)/n, from+1)
		out[i] = of(values[from:to])
	}
	return out
}

func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += clean(v)
	}
	return sum / float64(max(len(values), 1))
}

func highest(values []float64) float64 {
	top := 0.0
	for _, v := range values {
		top = max(top, clean(v))
	}
	return top
}

// clean makes what cannot be drawn 0, and bounds the rest.
func clean(v float64) float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) || v < 0 {
		return 0
	}
	return min(v, 1e15)
}
