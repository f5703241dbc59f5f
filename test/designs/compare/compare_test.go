package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/weirproxy/weir/internal/simulate/measure"
	"github.com/weirproxy/weir/internal/simulate/scenario"
)

func run1(v measure.Values) *measure.Run {
	return &measure.Run{UsageMessages: 100, DecisionBatches: 4, Rates: []measure.Rate{{Values: v}}}
}

// Cells are means over the runs that have a value; a scenario with an outage is told by what happened in it.
func TestCells(t *testing.T) {
	runs := []*measure.Run{
		run1(measure.Values{Over: 10, Under: -0.2, OutageOver: 200, OutageUnder: math.NaN()}),
		run1(measure.Values{Over: 21, Under: -0.4, OutageOver: math.NaN(), OutageUnder: math.NaN()}),
	}
	plain := &row{scenario: &scenario.Scenario{}}
	away := &row{scenario: &scenario.Scenario{Faults: []scenario.Fault{{Kind: scenario.AggregatorDown}}}}
	for want, got := range map[string]string{
		"16 / 0":  overUnder(plain, runs),
		"200 / –": overUnder(away, runs),
		"21":      worst(plain, runs),
		"200":     worst(away, runs),
		"100 + 4": messages(plain, runs),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// A picture is well-formed whatever the title, has a panel for each design, and says what it cuts off.
func TestPictureIsWellFormed(t *testing.T) {
	d := drawing{
		title: `<0.5x & "5x">`, note: "n", top: 2, length: 10 * time.Second,
		away: []measure.Span{{From: time.Second, To: 2 * time.Second}},
		panels: []panel{
			{name: "weir", fills: []float64{0, 1, 1.1}}, {name: "a<b", fills: []float64{0, 9.5, 1}},
			{name: "c", fills: []float64{0, 1, 1}}, {name: "d", fills: []float64{0, 1, 1}},
		},
	}
	var b, again bytes.Buffer
	d.write(&b)
	d.write(&again)
	if !bytes.Equal(b.Bytes(), again.Bytes()) {
		t.Error("the same drawing gives other bytes")
	}
	text := b.String()
	for decoder := xml.NewDecoder(&b); ; {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if n := strings.Count(text, "<g "); n != 4 {
		t.Errorf("%d panels", n)
	}
	if n := strings.Count(text, "cut off"); n != 1 {
		t.Errorf("%d panels say that they are cut off, want 1", n)
	}
}
