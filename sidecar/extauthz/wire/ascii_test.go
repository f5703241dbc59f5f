package wire

import (
	"bytes"
	"testing"
)

// A byte that is no ASCII is seen at any place of a text of any length, and nothing outside of the text is.
func TestNoByteIsOverlooked(t *testing.T) {
	for n := range 40 {
		around := bytes.Repeat([]byte{0xff}, n+2)
		v := around[1 : n+1]
		for i := range v {
			v[i] = 0x7f
		}
		if !isASCII(v) || !validText(v) {
			t.Errorf("%d bytes of ASCII are refused", n)
		}
		for i := range v {
			v[i] = 0x80
			if isASCII(v) || validText(v) {
				t.Errorf("byte %d of %d is overlooked", i, n)
			}
			v[i] = 0x7f
		}
	}
}
