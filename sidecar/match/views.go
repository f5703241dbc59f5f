package match

import "unsafe"

// text views bytes as a string without copying. The bytes must not change while it is in use: a
// Result's scratch only grows during one Match.
func text(b []byte) string {
	return unsafe.String(unsafe.SliceData(b), len(b))
}

// raw views a string as bytes, which must only be read.
func raw(s string) []byte {
	return unsafe.Slice(unsafe.StringData(s), len(s))
}
