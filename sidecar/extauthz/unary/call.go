package unary

import (
	"encoding/binary"

	"golang.org/x/net/http2"
	"google.golang.org/grpc/codes"
)

// prefixSize is what precedes a message: one byte that says whether it is compressed, four of its length.
const prefixSize = 5

// onBody takes a frame of a request's body.
func (c *conn) onBody(s *stream, f *http2.DataFrame) error {
	data := f.Data()
	s.got += int64(len(data))
	if s.call.length >= 0 && s.got > s.call.length {
		return c.reset(s.id, http2.ErrCodeProtocol)
	}
	if s.call.status != 0 { // no gRPC: the body does not matter
		data = nil
	}
	if f.StreamEnded() && len(s.body) == 0 && len(data) > 0 { // all of it, nearly always
		s.ended = true
		if s.call.length >= 0 && s.got != s.call.length {
			return c.reset(s.id, http2.ErrCodeProtocol)
		}
		return c.dispatch(s, data)
	}
	if code, reason := c.gather(s, data); code != codes.OK {
		s.ended = f.StreamEnded()
		return c.refuse(s, code, reason)
	}
	if f.StreamEnded() {
		return c.finish(s)
	}
	if full := c.server.options.streamWindow(); s.receive < full/2 {
		_ = c.framer.WriteWindowUpdate(s.id, uint32(full-s.receive)) //nolint:gosec // at most the window
		s.receive = full
	}
	return nil
}

// gather keeps part of a body, unless it is clear already that the call cannot be answered.
func (c *conn) gather(s *stream, data []byte) (codes.Code, string) {
	if c.bodies+len(data) > maxBodies*(c.server.options.MaxMessage+prefixSize) {
		return codes.ResourceExhausted, "too much of requests under way on this connection"
	}
	s.body = append(s.body, data...)
	c.bodies += len(data)
	if len(s.body) < prefixSize {
		return codes.OK, ""
	}
	size, code, reason := c.prefix(s.body)
	if code == codes.OK && len(s.body) > prefixSize+size {
		return codes.Internal, "more than one message"
	}
	return code, reason
}

// prefix reads what precedes a message.
func (c *conn) prefix(body []byte) (size int, code codes.Code, reason string) {
	length := binary.BigEndian.Uint32(body[1:])
	switch {
	case body[0] == 1:
		return 0, codes.Unimplemented, "compressed messages are not supported"
	case body[0] != 0:
		return 0, codes.Internal, "malformed message"
	case uint64(length) > uint64(c.server.options.MaxMessage): //nolint:gosec // positive
		return 0, codes.ResourceExhausted, "message larger than the server takes"
	}
	return int(length), codes.OK, ""
}

// finish answers a request that is complete.
func (c *conn) finish(s *stream) error {
	s.ended = true
	if s.call.length >= 0 && s.got != s.call.length {
		return c.reset(s.id, http2.ErrCodeProtocol)
	}
	if s.call.status != 0 {
		return c.respondHTTP(s)
	}
	return c.dispatch(s, s.body)
}

// dispatch has the call's handler answer the one message of body.
func (c *conn) dispatch(s *stream, body []byte) error {
	if len(body) < prefixSize {
		return c.refuse(s, codes.Internal, "no message")
	}
	size, code, reason := c.prefix(body)
	if code != codes.OK {
		return c.refuse(s, code, reason)
	}
	if len(body) != prefixSize+size {
		return c.refuse(s, codes.Internal, "not exactly one message")
	}
	out, code, reason := c.call(s, body[prefixSize:])
	c.control = 0
	switch {
	case code != codes.OK:
		return c.refuse(s, code, reason)
	case len(out) < prefixSize:
		return c.refuse(s, codes.Internal, "the handler dropped the reply it was given")
	case len(out)-prefixSize > c.server.options.MaxMessage:
		return c.refuse(s, codes.ResourceExhausted, "reply larger than the server sends")
	}
	if c.reply = out[:prefixSize]; cap(out) > keptBuffer {
		c.reply = make([]byte, prefixSize, 1<<10)
	}
	binary.BigEndian.PutUint32(out[1:], uint32(len(out)-prefixSize)) //nolint:gosec // bounded above
	return c.respond(s, out)
}

// call runs the handler. What it panics with costs the call, and nothing else.
func (c *conn) call(s *stream, message []byte) (out []byte, code codes.Code, reason string) {
	defer func() {
		if v := recover(); v != nil {
			out, code, reason = nil, codes.Internal, "the call failed inside"
			if told := c.server.options.Panicked; told != nil {
				told(s.call.path, v)
			}
		}
	}()
	return s.call.handler(message, c.reply[:prefixSize])
}
