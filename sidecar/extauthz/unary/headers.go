package unary

import (
	"bytes"

	"golang.org/x/net/http2/hpack"
)

// headers decodes the header blocks of a connection.
//
// A peer sends much the same block for every call, and some of it as literals that it never indexes (Envoy:
// the path), which hpack makes a new string of each time. So a block that is the same as the one before is
// taken field by field, and if none of its fields touches hpack's table, its result is kept: for the same
// bytes it holds until another block is decoded.
type headers struct {
	decoder *hpack.Decoder
	methods Methods
	limit   int

	request request // of the block decoded last
	size    int     // of its list, as HTTP/2 counts
	emitted bool    // a field was complete

	last   []byte // the newest block, if it came in one piece and is short
	stands bool   // request is what last says, again, and decoding it would change nothing
}

func newHeaders(methods Methods, limit int) *headers {
	h := &headers{methods: methods, limit: limit}
	h.decoder = hpack.NewDecoder(4096, h.field)
	h.decoder.SetMaxStringLength(limit)
	return h
}

// whole decodes a block that came in one piece. An error ends the connection.
func (h *headers) whole(block []byte) error {
	same := len(block) > 0 && bytes.Equal(block, h.last)
	if same && h.stands {
		return nil
	}
	h.begin()
	h.last = h.last[:0]
	if len(block) <= maxBlock {
		h.last = append(h.last, block...)
	}
	if !same {
		if _, err := h.decoder.Write(block); err != nil {
			return err
		}
		return h.finish()
	}
	pure, err := h.fieldByField(block)
	if err == nil {
		err = h.finish()
	}
	h.stands = pure && err == nil
	return err
}

// begin makes ready for a block, whole or in pieces.
func (h *headers) begin() {
	h.request = request{length: -1}
	h.size = 0
	h.stands = false
	h.decoder.SetEmitEnabled(true)
}

// piece decodes part of a block.
func (h *headers) piece(fragment []byte) error {
	h.last = h.last[:0]
	_, err := h.decoder.Write(fragment)
	return err
}

// finish ends a block and judges the list.
func (h *headers) finish() error {
	if err := h.decoder.Close(); err != nil {
		return err
	}
	h.request.judge(h.methods)
	return nil
}

// fieldByField decodes a block byte by byte, so that hpack says where each field ends, and reports whether
// all of them leave its table alone: indexed fields, and literals without indexing (RFC 7541, 6).
func (h *headers) fieldByField(block []byte) (pure bool, err error) {
	pure = true
	start := 0
	for i := range block {
		h.emitted = false
		if _, err := h.decoder.Write(block[i : i+1]); err != nil {
			return false, err
		}
		if h.emitted {
			first := block[start]
			pure = pure && (first>>7 == 1 || first>>5 == 0)
			start = i + 1
		}
	}
	return pure && start == len(block), nil
}

// field takes one field from hpack. Past the limit hpack only keeps its table.
func (h *headers) field(f hpack.HeaderField) {
	h.emitted = true
	if h.size += int(f.Size()); h.size > h.limit {
		h.request.large = true
		h.decoder.SetEmitEnabled(false)
		return
	}
	h.request.add(f.Name, f.Value)
}
