package render

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/weirproxy/weir/internal/simulate/measure"
)

func TestWhatIsFullestIsNotLostBetweenColumns(t *testing.T) {
	s := &measure.Series{Bin: time.Second, Admitted: make([]float64, 600), Window: make([]float64, 600)}
	s.Window[301] = 1.25
	c := newCourse(&Picture{Series: s}, 50, 70)
	if c.fullest != 125 || c.fullestAt != 301 || highest(c.window) != 125 {
		t.Errorf("fullest %v at %v, drawn %v; want 125 at 301", c.fullest, c.fullestAt, highest(c.window))
	}
}

// Forty clients of 100/s each have no common limit of 4000/s: it is not drawn, and does not press the rest flat.
func TestSeveralCountersHaveNoCommonLimit(t *testing.T) {
	p := front()
	p.Counters = 40
	for i := range p.Series.Limit {
		p.Series.Limit[i] *= 40
	}
	c := newCourse(p, 50, 70)
	if c.limit != nil || c.topRate() > 4000 {
		t.Errorf("a limit of %v, rates up to %v", c.limit, c.topRate())
	}
	if text := strings.Join(plotLines(p, Terminal{}), "\n"); strings.Contains(text, "_ limit") || !strings.Contains(text, "fullest counter") {
		t.Errorf("plotted\n%s", text)
	}
}

// Of rates that chance makes uneven the mean is drawn: the area under a curve is what was admitted.
func TestRatesKeepTheirMean(t *testing.T) {
	got := resample([]float64{10, 0, 20, 10, math.NaN(), 8}, 3, mean)
	if got[0] != 5 || got[1] != 15 || got[2] != 4 {
		t.Errorf("resampled %v", got)
	}
	if got = resample([]float64{1, 2}, 4, mean); got[0] != 1 || got[1] != 1 || got[2] != 2 || got[3] != 2 {
		t.Errorf("stretched %v", got)
	}
}

// pictures are any: of no bins, of series that are too short, with values that no run has.
func pictures() *rapid.Generator[*Picture] {
	return rapid.Custom(func(t *rapid.T) *Picture {
		value := rapid.OneOf(rapid.Float64Range(0, 3), rapid.Float64(), rapid.Just(math.NaN()), rapid.Just(math.Inf(1)))
		values := func(name string) []float64 { return rapid.SliceOfN(value, 0, 60).Draw(t, name) }
		p := &Picture{Title: rapid.String().Draw(t, "title"), Subtitle: rapid.String().Draw(t, "subtitle")}
		if rapid.Bool().Draw(t, "measured") {
			p.Series = &measure.Series{
				Bin:   time.Duration(rapid.Int64().Draw(t, "bin")),
				Limit: values("limit"), Offered: values("offered"), Admitted: values("admitted"), Exact: values("exact"),
				Window: values("window"),
			}
		}
		return p
	})
}

func TestAnyPictureIsDrawn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := pictures().Draw(t, "picture")
		var b bytes.Buffer
		if err := SVG(&b, p); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(b.String(), "NaN") || strings.Contains(b.String(), "Inf") {
			t.Errorf("a coordinate is no number:\n%s", b.String())
		}
		for d := xml.NewDecoder(&b); ; {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
		}
		term := Terminal{Width: rapid.IntRange(minWidth, 200).Draw(t, "width"), UTF8: rapid.Bool().Draw(t, "utf8")}
		for i, line := range plotLines(p, term) {
			head := i < 2 || strings.HasPrefix(line, "window content")
			if n := utf8.RuneCountInString(line); !head && n > term.Width {
				t.Errorf("line %d has %d columns of %d: %s", i, n, term.Width, line)
			}
			if strings.ContainsFunc(line, func(r rune) bool { return r < ' ' || r == 0x7f }) {
				t.Errorf("a control character in %q", line)
			}
		}
	})
}
