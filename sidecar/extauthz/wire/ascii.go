package wire

import (
	"encoding/binary"
	"unicode/utf8"
)

// validText reports whether a string is UTF-8. Nearly all are ASCII.
func validText(v []byte) bool { return isASCII(v) || utf8.Valid(v) }

// isASCII looks at eight bytes at a time; the last eight may overlap those before.
func isASCII(v []byte) bool {
	const high = 0x8080808080808080
	n := len(v)
	if n < 8 {
		var seen byte
		for _, c := range v {
			seen |= c
		}
		return seen < utf8.RuneSelf
	}
	seen := binary.LittleEndian.Uint64(v[n-8:])
	for len(v) > 8 {
		seen |= binary.LittleEndian.Uint64(v)
		v = v[8:]
	}
	return seen&high == 0
}
