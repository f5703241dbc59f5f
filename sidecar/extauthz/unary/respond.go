package unary

import (
	"golang.org/x/net/http2"
	"google.golang.org/grpc/codes"
)

// respond sends a reply, message with prefix, and keeps what the peer's windows do not let through.
func (c *conn) respond(s *stream, reply []byte) error {
	if room := min(s.send, c.peer.send); int64(len(reply)) > room &&
		c.replies+len(reply) > maxReplies*(c.server.options.MaxMessage+prefixSize) {
		return c.refuse(s, codes.ResourceExhausted, "too much of replies waits for this connection's windows")
	}
	s.grpc = true
	c.header(s, c.server.blocks.headers, false)
	c.send(s, reply)
	return c.wire.err
}

// send sends data of a reply as far as the windows go, and keeps the rest or ends the stream.
func (c *conn) send(s *stream, data []byte) {
	rest := c.sendData(s, data)
	if len(rest) > 0 {
		s.held = append(s.held, rest...)
		c.replies += len(rest)
		return
	}
	c.conclude(s)
}

func (c *conn) sendData(s *stream, data []byte) (rest []byte) {
	for len(data) > 0 {
		n := min(int64(len(data)), int64(maxFrame), s.send, c.peer.send)
		if n <= 0 {
			break
		}
		_ = c.framer.WriteData(s.id, false, data[:n])
		s.send -= n
		c.peer.send -= n
		data = data[n:]
	}
	return data
}

// release sends what was kept of a reply, as far as it goes now.
func (c *conn) release(s *stream) {
	rest := c.sendData(s, s.held)
	c.replies -= len(s.held) - len(rest)
	s.held = append(s.held[:0], rest...)
	if len(rest) == 0 {
		c.conclude(s)
	}
}

// pump releases all that was kept, oldest first.
func (c *conn) pump() {
	for i := 0; i < len(c.streams.open) && c.replies > 0 && c.peer.send > 0; {
		s := c.streams.open[i]
		if len(s.held) > 0 && s.send > 0 {
			c.release(s)
		}
		if i < len(c.streams.open) && c.streams.open[i] == s {
			i++ // it is still open
		}
	}
}

// conclude ends a response of which all data was sent.
func (c *conn) conclude(s *stream) {
	if s.grpc {
		c.header(s, c.server.blocks.ok, true)
	} else {
		_ = c.framer.WriteData(s.id, true, nil)
	}
	c.done(s)
}

// done closes a stream that was answered. A peer that has not sent all is told not to.
func (c *conn) done(s *stream) {
	if s.ended {
		c.close(s, endDone)
		return
	}
	_ = c.framer.WriteRSTStream(s.id, http2.ErrCodeNo)
	c.close(s, endReset)
}

// refuse answers a call by a status alone. Its length does not count towards the windows.
func (c *conn) refuse(s *stream, code codes.Code, reason string) error {
	c.header(s, c.encode().refusal(code, reason), true)
	c.done(s)
	return c.wire.err
}

// respondHTTP answers a request that is no gRPC call.
func (c *conn) respondHTTP(s *stream) error {
	if s.call.method == "HEAD" {
		c.header(s, c.encode().http(s.call.status), true)
		c.done(s)
		return c.spend()
	}
	c.header(s, c.encode().http(s.call.status), false)
	c.send(s, []byte("this server answers gRPC calls only\n"))
	return c.spend()
}

// header sends a header block.
func (c *conn) header(s *stream, block []byte, last bool) {
	if c.peer.resized {
		c.peer.resized = false
		block = c.encode().resized(block)
	}
	_ = c.framer.WriteHeaders(http2.HeadersFrameParam{
		StreamID: s.id, BlockFragment: block, EndHeaders: true, EndStream: last,
	})
}

func (c *conn) encode() *encoder {
	if c.encoder == nil {
		c.encoder = newEncoder()
	}
	return c.encoder
}
