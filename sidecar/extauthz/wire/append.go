package wire

import (
	"slices"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"
)

// Field numbers of a CheckResponse and of the messages in it.
const (
	deniedField   protowire.Number = 2
	okField       protowire.Number = 3
	metadataField protowire.Number = 4

	deniedStatus  protowire.Number = 1
	deniedHeaders protowire.Number = 2
	deniedBody    protowire.Number = 3
	okHeaders     protowire.Number = 6 // response_headers_to_add
)

// overwrite is OVERWRITE_IF_EXISTS_OR_ADD. append_action is always set: unset, a filter appends to what
// the service said.
const overwrite = 2

// prefixed puts the length of what was appended since at before it.
func prefixed(dst []byte, at int) []byte {
	n := len(dst) - at
	if n >= 0x80 {
		var memory [10]byte
		return slices.Insert(dst, at, protowire.AppendVarint(memory[:0], uint64(n))...)
	}
	dst = append(dst, 0)
	copy(dst[at+1:], dst[at:])
	dst[at] = byte(n)
	return dst
}

// appendText appends a string, or bytes, as a field.
func appendText[T string | []byte](dst []byte, num protowire.Number, v T) []byte {
	dst = protowire.AppendTag(dst, num, protowire.BytesType)
	dst = protowire.AppendVarint(dst, uint64(len(v)))
	return append(dst, v...)
}

// appendHeader appends a HeaderValueOption as field num. The value is in two parts.
func appendHeader(dst []byte, num protowire.Number, name, value string, tail []byte) []byte {
	long := len(value) + len(tail)
	header := 1 + sizeBytes(len(name)) + 1 + sizeBytes(long)
	dst = appendHead(dst, num, 1+sizeBytes(header)+2)
	dst = appendHead(dst, 1, header)
	dst = append(appendHead(dst, 1, len(name)), name...)
	dst = append(append(appendHead(dst, 2, long), value...), tail...)
	return append(dst, 3<<3|byte(protowire.VarintType), overwrite)
}

// appendHead appends the tag of a field of n bytes, and their length.
func appendHead(dst []byte, num protowire.Number, n int) []byte {
	if n < 0x80 && num <= maxField {
		return append(dst, byte(num)<<3|byte(protowire.BytesType), byte(n))
	}
	dst = protowire.AppendTag(dst, num, protowire.BytesType)
	return protowire.AppendVarint(dst, uint64(n)) //nolint:gosec // a length
}

func sizeBytes(n int) int {
	if n < 0x80 {
		return 1 + n
	}
	return protowire.SizeBytes(n)
}

// appendNumber appends a header whose value ends in a number.
func appendNumber(dst []byte, num protowire.Number, name, value string, n int64) []byte {
	var memory [20]byte
	return appendHeader(dst, num, name, value, strconv.AppendInt(memory[:0], n, 10))
}

// appendItemHeader appends a service limit item of the draft; item is all of it up to the first number.
func appendItemHeader(dst []byte, num protowire.Number, item string, remaining, reset int64) []byte {
	var memory [48]byte
	tail := strconv.AppendInt(memory[:0], remaining, 10)
	tail = append(tail, ";t="...)
	tail = strconv.AppendInt(tail, reset, 10)
	return appendHeader(dst, num, "ratelimit", item, tail)
}

// appendItem appends an entry of a Struct with a text.
func appendItem(dst []byte, name, text string) []byte {
	dst = protowire.AppendTag(dst, 1, protowire.BytesType)
	at := len(dst)
	dst = appendText(dst, 1, name)
	dst = protowire.AppendTag(dst, 2, protowire.BytesType)
	inner := len(dst)
	dst = prefixed(appendText(dst, textKind, text), inner)
	return prefixed(dst, at)
}
