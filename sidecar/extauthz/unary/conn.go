package unary

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"golang.org/x/net/http2"
)

// conn is one connection. All of it belongs to its goroutine, save that the server may move the read
// deadline or close it.
type conn struct {
	server  *Server
	wire    wire
	in      *bufio.Reader
	framer  *http2.Framer
	headers *headers
	encoder *encoder // of what is not constant; made when needed

	streams streams
	closed  closed
	last    uint32 // the highest stream that the peer began
	block   block  // the header block under way

	receive int64 // what the peer may still send on the connection
	bodies  int   // bytes of bodies held
	replies int   // bytes of replies held
	peer    peer
	reply   []byte // for the handler; begins with room for the prefix

	settled bool // the peer's first SETTINGS are here
	control int  // see maxControl
	going   goingAway
}

// peer is what the other side allows.
type peer struct {
	send    int64 // on the connection
	window  int64 // on a new stream
	resized bool  // its table for header blocks may be smaller: the next block says that none is used
}

// goingAway is how far the end of a connection is (RFC 9113, 6.8): a first GOAWAY that refuses nothing, and
// once the peer has answered the ping after it, a second that names the last stream.
type goingAway struct {
	told, final bool
	until       time.Time // zero: until the server closes the connection
}

func newConn(s *Server, nc net.Conn) *conn {
	c := &conn{
		server:  s,
		wire:    wire{nc: nc, idle: s.options.Idle, slow: s.options.Write},
		headers: newHeaders(s.methods, s.options.MaxHeaders),
		receive: connectionWindow,
		peer:    peer{send: initialWindow, window: initialWindow},
		reply:   make([]byte, prefixSize, 1<<10),
	}
	c.wire.waker = c
	c.in = bufio.NewReaderSize(&c.wire, readBuffer)
	c.framer = http2.NewFramer(&c.wire, c.in)
	c.framer.SetMaxReadFrameSize(maxFrame)
	c.framer.SetReuseFrames()
	return c
}

// failure ends a connection, with a GOAWAY.
type failure struct {
	code   http2.ErrCode
	reason string
}

func (f failure) Error() string { return f.reason }

func protocol(reason string) error { return failure{http2.ErrCodeProtocol, reason} }

// errOver ends a connection of which all is done.
var errOver = errors.New("the connection is over")

// serve answers the connection's calls until it ends.
func (c *conn) serve() {
	err := c.run()
	f, ok := verdict(err)
	if ok {
		_ = c.framer.WriteGoAway(c.last, f.code, []byte(f.reason))
	}
	if c.wire.flush() != nil || (!ok && !errors.Is(err, errOver)) {
		return
	}
	c.linger()
}

// linger lets the peer read what was written last: to close with bytes unread would reset the connection
// under it.
func (c *conn) linger() {
	if half, ok := c.wire.nc.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
	_ = c.wire.nc.SetReadDeadline(time.Now().Add(time.Second))
	_, _ = io.CopyN(io.Discard, c.wire.nc, connectionWindow)
}

// verdict says which failure an error is to the peer, if it is one that the peer is to hear of.
func verdict(err error) (f failure, ok bool) {
	var connection http2.ConnectionError
	var ofStream http2.StreamError
	switch {
	case errors.As(err, &f):
	case errors.As(err, &connection):
		f = failure{http2.ErrCode(connection), "malformed frame"}
	case errors.As(err, &ofStream): // not of one that may be dropped: see frame
		f = failure{ofStream.Code, "malformed frame"}
	case errors.Is(err, http2.ErrFrameTooLarge):
		f = failure{http2.ErrCodeFrameSize, "frame larger than SETTINGS_MAX_FRAME_SIZE"}
	case errors.Is(err, io.ErrUnexpectedEOF): // also what the Framer says of a payload too short
		f = failure{http2.ErrCodeFrameSize, "frame too short"}
	default:
		return f, false
	}
	return f, true
}

func (c *conn) run() error {
	_ = c.wire.nc.SetReadDeadline(time.Now().Add(c.server.options.Write))
	_ = c.framer.WriteSettings(
		http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: uint32(c.server.options.MaxStreams)},  //nolint:gosec // bounded by withDefaults
		http2.Setting{ID: http2.SettingInitialWindowSize, Val: uint32(c.server.options.streamWindow())}, //nolint:gosec // bounded by withDefaults
		http2.Setting{ID: http2.SettingMaxHeaderListSize, Val: uint32(c.server.options.MaxHeaders)},     //nolint:gosec // bounded by withDefaults
	)
	_ = c.framer.WriteWindowUpdate(0, connectionWindow-initialWindow)
	c.wire.begun = true
	var preface [len(http2.ClientPreface)]byte
	if _, err := io.ReadFull(c.in, preface[:]); err != nil {
		return fmt.Errorf("read the preface: %w", err)
	}
	if string(preface[:]) != http2.ClientPreface {
		return protocol("no HTTP/2 preface")
	}
	for !c.going.final || len(c.streams.open) > 0 {
		if err := c.next(); err != nil {
			return err
		}
	}
	return errOver
}

// next reads and handles one frame.
func (c *conn) next() error {
	c.wire.next(c.in.Buffered() > 0 || c.block.open)
	if c.block.open {
		c.wire.fresh = false
	}
	h, err := c.framer.ReadFrameHeader()
	if err != nil {
		return err
	}
	if !c.settled {
		if h.Type != http2.FrameSettings || h.Flags.Has(http2.FlagSettingsAck) {
			return protocol("the first frame is not SETTINGS")
		}
		c.settled = true
	}
	switch h.Type {
	case http2.FrameHeaders:
		return c.onHeaders(h)
	case http2.FrameContinuation:
		return c.onContinuation(h)
	}
	f, err := c.framer.ReadFrameForHeader(h)
	if err != nil {
		var ofStream http2.StreamError
		if errors.As(err, &ofStream) && h.Type == http2.FrameWindowUpdate { // an increment of zero
			return c.onZeroIncrement(ofStream.StreamID)
		}
		return err
	}
	return c.onFrame(f)
}

// armed implements waker.
func (c *conn) armed() { c.control = 0 }

// woken implements waker: the server wants to end.
func (c *conn) woken() bool {
	if c.going.told || !c.server.draining.Load() {
		return false
	}
	c.goAway(time.Time{}) // the server closes what is not done in time
	return true
}

// expired implements waker.
func (c *conn) expired() error {
	switch {
	case c.going.told && !c.going.until.IsZero() && time.Now().After(c.going.until):
		return errOver
	case c.going.told: // the server's call to end came late
		c.wire.fix(c.going.until)
		return nil
	case c.wire.begun || len(c.streams.open) > 0:
		return failure{http2.ErrCodeEnhanceYourCalm, "a frame or a call did not go on in time"}
	}
	c.goAway(time.Now().Add(c.server.options.Drain))
	return nil
}

// drainPing tells the answer to the ping of goAway from others.
func drainPing() [8]byte { return [8]byte{'w', 'e', 'i', 'r', 'd', 'o', 'n', 'e'} }

// goAway begins to end the connection. Nothing is refused yet: calls that are on their way are answered.
func (c *conn) goAway(until time.Time) {
	c.going.told, c.going.until = true, until
	_ = c.framer.WriteGoAway(maxWindow, http2.ErrCodeNo, nil)
	_ = c.framer.WritePing(false, drainPing())
	c.wire.fix(until)
}

// wentAway ends it: the peer began no stream after the last.
func (c *conn) wentAway() {
	c.going.final = true
	_ = c.framer.WriteGoAway(c.last, http2.ErrCodeNo, nil)
}

// spend counts a frame that is no call.
func (c *conn) spend() error {
	if c.control++; c.control > maxControl {
		return failure{http2.ErrCodeEnhanceYourCalm, "too many frames between calls"}
	}
	return nil
}
