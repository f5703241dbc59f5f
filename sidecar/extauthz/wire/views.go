package wire

import "unsafe"

// view sees bytes as a string without copying. They must not change while it is in use.
func view(b []byte) string {
	return unsafe.String(unsafe.SliceData(b), len(b))
}
