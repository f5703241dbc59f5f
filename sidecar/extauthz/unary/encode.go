package unary

import (
	"bytes"
	"slices"
	"strconv"

	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc/codes"
)

// contentType is that of every reply.
const contentType = "application/grpc"

// blocks are the header blocks of an answered call. They need no table at the peer, so they are the same
// on every connection.
type blocks struct{ headers, ok []byte }

func newBlocks() blocks {
	e := newEncoder()
	return blocks{
		headers: slices.Clone(e.block(statusOf(200), field("content-type", contentType))),
		ok:      slices.Clone(e.block(field("grpc-status", "0"))),
	}
}

// encoder makes header blocks that use no dynamic table. A block is valid until the next.
type encoder struct {
	buf    bytes.Buffer
	hpack  *hpack.Encoder
	update []byte // says that the table has no room
	joined []byte
}

func newEncoder() *encoder {
	e := new(encoder)
	e.hpack = hpack.NewEncoder(&e.buf)
	e.hpack.SetMaxDynamicTableSize(0)
	first := slices.Clone(e.block(statusOf(200))) // hpack begins it with the table's size, once
	e.update = first[:len(first)-len(e.block(statusOf(200)))]
	return e
}

func (e *encoder) block(fields ...hpack.HeaderField) []byte {
	e.buf.Reset()
	for _, f := range fields {
		_ = e.hpack.WriteField(f) // to memory
	}
	return e.buf.Bytes()
}

// resized returns block for a peer that has changed its table's size, which such a block is to
// acknowledge (RFC 7541, 4.2): none of it is used.
func (e *encoder) resized(block []byte) []byte {
	e.joined = append(append(e.joined[:0], e.update...), block...)
	return e.joined
}

// refusal is the one block of a call that is answered without a message.
func (e *encoder) refusal(code codes.Code, reason string) []byte {
	return e.block(statusOf(200), field("content-type", contentType),
		field("grpc-status", strconv.Itoa(int(code))), field("grpc-message", escape(reason)))
}

// http is the block before the text of an answer to what is no gRPC call.
func (e *encoder) http(code int) []byte {
	return e.block(statusOf(code), field("content-type", "text/plain; charset=utf-8"))
}

func statusOf(code int) hpack.HeaderField { return field(":status", strconv.Itoa(code)) }

func field(name, value string) hpack.HeaderField { return hpack.HeaderField{Name: name, Value: value} }

// escape makes a status message of any bytes fit for a header, as gRPC has it, and cuts it to the bound.
func escape(reason string) string {
	reason = reason[:min(len(reason), maxReason)]
	plain := true
	for i := range len(reason) {
		plain = plain && !escaped(reason[i])
	}
	if plain {
		return reason
	}
	const hex = "0123456789ABCDEF"
	out := make([]byte, 0, 3*len(reason))
	for _, b := range []byte(reason) {
		if escaped(b) {
			out = append(out, '%', hex[b>>4], hex[b&15])
		} else {
			out = append(out, b)
		}
	}
	return string(out)
}

func escaped(b byte) bool { return b < ' ' || b > '~' || b == '%' }
