package unary

import (
	"golang.org/x/net/http2"
	"google.golang.org/grpc/codes"
)

// block is a header block under way: HEADERS, and CONTINUATION until its end.
type block struct {
	stream    uint32
	open      bool
	ended     bool // the stream ends with it
	onItself  bool // the stream is said to depend on itself
	fragments int
	size      int
}

func (c *conn) onHeaders(h http2.FrameHeader) error {
	if h.StreamID == 0 {
		return protocol("HEADERS of no stream")
	}
	c.block = block{
		stream: h.StreamID,
		open:   !h.Flags.Has(http2.FlagHeadersEndHeaders),
		ended:  h.Flags.Has(http2.FlagHeadersEndStream),
	}
	fragment, taken, err := c.fragment(h)
	if err != nil {
		return err
	}
	if c.block.open {
		c.headers.begin()
		err = c.piece(fragment)
	} else {
		err = c.headers.whole(fragment)
	}
	if err != nil {
		return compression(err)
	}
	if err := c.discard(taken); err != nil || c.block.open {
		return err
	}
	return c.onBlock()
}

// fragment returns the part of a header block that a HEADERS frame carries, and how many bytes of input
// are to be discarded once it is decoded.
func (c *conn) fragment(h http2.FrameHeader) (fragment []byte, taken int, err error) {
	if h.Flags&(http2.FlagHeadersPadded|http2.FlagHeadersPriority) == 0 {
		fragment, err = c.in.Peek(int(h.Length))
		return fragment, len(fragment), err
	}
	f, err := c.framer.ReadFrameForHeader(h)
	if err != nil {
		return nil, 0, err // also where only the stream is at fault: its block is not decoded
	}
	hf := f.(*http2.HeadersFrame)
	c.block.onItself = hf.HasPriority() && hf.Priority.StreamDep == h.StreamID
	return hf.HeaderBlockFragment(), 0, nil
}

func (c *conn) onContinuation(h http2.FrameHeader) error {
	fragment, err := c.in.Peek(int(h.Length))
	if err != nil {
		return err
	}
	if err := c.piece(fragment); err != nil {
		return compression(err)
	}
	if err := c.discard(len(fragment)); err != nil {
		return err
	}
	if c.block.open = !h.Flags.Has(http2.FlagContinuationEndHeaders); c.block.open {
		return nil
	}
	if err := c.headers.finish(); err != nil {
		return compression(err)
	}
	return c.onBlock()
}

// piece decodes a fragment, within the bounds on a block. The list may be longer than the block, so the
// block needs no bound of its own beside the list's; what is beyond is not worth decoding.
func (c *conn) piece(fragment []byte) error {
	c.block.fragments++
	c.block.size += len(fragment)
	if c.block.fragments > maxFragments || c.block.size > 2*c.server.options.MaxHeaders {
		return failure{http2.ErrCodeEnhanceYourCalm, "header block too long"}
	}
	return c.headers.piece(fragment)
}

func (c *conn) discard(n int) error {
	_, err := c.in.Discard(n)
	return err
}

// compression makes the connection's failure of an error of hpack.
func compression(err error) error {
	if f, ok := verdict(err); ok {
		return f
	}
	return failure{http2.ErrCodeCompression, "header block cannot be decoded"}
}

// onBlock handles a header list.
func (c *conn) onBlock() error {
	id := c.block.stream
	if s := c.streams.find(id); s != nil {
		return c.onTrailers(s)
	}
	if id%2 == 0 {
		return protocol("a client's stream has an even number")
	}
	if c.ignored(id) {
		return nil
	}
	if id <= c.last {
		return c.onLateBlock(id)
	}
	c.last = id
	r := &c.headers.request
	if c.block.onItself || ((r.bad || r.lacks) && !r.large) {
		c.closed.add(id, endReset)
		return c.reset(id, http2.ErrCodeProtocol)
	}
	if len(c.streams.open) >= c.server.options.MaxStreams {
		c.closed.add(id, endReset)
		return c.reset(id, http2.ErrCodeRefusedStream)
	}
	return c.begin(id, r)
}

// onLateBlock handles a list for a stream that is closed, or was passed over.
func (c *conn) onLateBlock(id uint32) error {
	switch c.closed.find(id) {
	case endReset:
		return c.spend() // sent before the peer knew
	case endNever:
		return protocol("a stream's number is lower than one before")
	}
	return failure{http2.ErrCodeStreamClosed, "HEADERS of a closed stream"}
}

func (c *conn) begin(id uint32, r *request) error {
	s := c.streams.add(id)
	s.call = *r
	s.receive = c.server.options.streamWindow()
	s.send = c.peer.window
	if s.call.status == 0 && s.call.handler == nil {
		s.ended = c.block.ended
		return c.refuse(s, codes.Unimplemented, "unknown method")
	}
	if c.block.ended {
		return c.finish(s)
	}
	return nil
}

func (c *conn) onTrailers(s *stream) error {
	r := &c.headers.request
	switch {
	case s.ended:
		return c.reset(s.id, http2.ErrCodeStreamClosed)
	case !c.block.ended, c.block.onItself, r.bad, r.pseudo:
		return c.reset(s.id, http2.ErrCodeProtocol)
	}
	return c.finish(s)
}
