package render

import (
	"bytes"
	"flag"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/weirproxy/weir/internal/simulate/measure"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden holds got against testdata/name.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is\n%s\nwant (or run with -update)\n%s", name, got, want)
	}
}

// front is a made-up run: 0.5 times a limit of 1000/s, from 4 s on three times, a limiter that lets 12 % too many through
// at first.
func front() *Picture {
	r := rand.New(rand.NewPCG(1, 2))
	s := &measure.Series{Bin: 20 * time.Second / 600}
	for i := range 600 {
		at := s.Bin.Seconds() * float64(i)
		offered := 500.0
		if at >= 4 {
			offered = 3000
		}
		offered += r.NormFloat64() * math.Sqrt(offered/s.Bin.Seconds())
		admitted, exact, window := offered, offered, 0.5*min(at, 1)
		switch {
		case at >= 4.2:
			admitted, exact = min(offered, 960+120*math.Sin(at*6)), min(offered, 1000)
			window = 0.97 + 0.15*math.Exp(4.2-at) + 0.02*math.Sin(at*6)
		case at >= 4:
			window = 0.5 + 3*(at-4)
		}
		s.Limit = append(s.Limit, 1000)
		s.Offered = append(s.Offered, offered)
		s.Admitted = append(s.Admitted, admitted)
		s.Exact = append(s.Exact, exact)
		s.Window = append(s.Window, window)
	}
	return &Picture{Title: "front: three times the limit", Subtitle: "10 pods, 1000/1s, seed 1", Series: s}
}

func TestPlot(t *testing.T) {
	for name, term := range map[string]Terminal{
		"plot.txt":        {},
		"plot-utf8.txt":   {UTF8: true},
		"plot-colour.txt": {UTF8: true, Colour: true, Width: 100},
	} {
		var b bytes.Buffer
		if err := Plot(&b, front(), term); err != nil {
			t.Fatal(err)
		}
		golden(t, name, b.Bytes())
	}
}
