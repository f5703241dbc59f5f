package render

import (
	"bytes"
	"testing"
)

func TestSVG(t *testing.T) {
	var b bytes.Buffer
	if err := SVG(&b, front()); err != nil {
		t.Fatal(err)
	}
	golden(t, "front.svg", b.Bytes())
}
