package unary

import (
	"golang.org/x/net/http2"
)

// onFrame handles a frame that carries no header block.
func (c *conn) onFrame(f http2.Frame) error {
	if f, ok := f.(*http2.DataFrame); ok {
		return c.onData(f)
	}
	if f, ok := f.(*http2.WindowUpdateFrame); ok {
		return c.onWindowUpdate(f)
	}
	if err := c.spend(); err != nil {
		return err
	}
	switch f := f.(type) {
	case *http2.SettingsFrame:
		return c.onSettings(f)
	case *http2.PingFrame:
		c.onPing(f)
	case *http2.RSTStreamFrame:
		return c.onReset(f)
	case *http2.PriorityFrame:
		if f.StreamDep == f.StreamID {
			return c.reset(f.StreamID, http2.ErrCodeProtocol)
		}
	case *http2.PushPromiseFrame:
		return protocol("PUSH_PROMISE from a client")
	}
	return nil // GOAWAY: the client ends when it has its answers. Unknown frames are to be ignored
}

func (c *conn) onSettings(f *http2.SettingsFrame) error {
	if f.IsAck() {
		return nil
	}
	if f.NumSettings() > maxSettings {
		return failure{http2.ErrCodeEnhanceYourCalm, "too many settings in a frame"}
	}
	for i := range f.NumSettings() {
		if err := c.onSetting(f.Setting(i)); err != nil {
			return err
		}
	}
	_ = c.framer.WriteSettingsAck()
	c.pump()
	return nil
}

func (c *conn) onSetting(s http2.Setting) error {
	if err := s.Valid(); err != nil {
		return err
	}
	switch s.ID {
	case http2.SettingHeaderTableSize:
		c.peer.resized = true
	case http2.SettingInitialWindowSize:
		change := int64(s.Val) - c.peer.window
		c.peer.window = int64(s.Val)
		for _, open := range c.streams.open {
			if open.send += change; open.send > maxWindow {
				return failure{http2.ErrCodeFlowControl, "SETTINGS_INITIAL_WINDOW_SIZE makes a window too large"}
			}
		}
	}
	return nil
}

func (c *conn) onPing(f *http2.PingFrame) {
	if !f.IsAck() {
		_ = c.framer.WritePing(true, f.Data)
		return
	}
	if c.going.told && !c.going.final && f.Data == drainPing() {
		c.wentAway()
	}
}

func (c *conn) onReset(f *http2.RSTStreamFrame) error {
	if c.isIdle(f.StreamID) {
		return protocol("RST_STREAM of a stream that was never begun")
	}
	if s := c.streams.find(f.StreamID); s != nil {
		c.close(s, endPeer)
	}
	return nil
}

func (c *conn) onWindowUpdate(f *http2.WindowUpdateFrame) error {
	held := c.replies
	if err := c.widen(f); err != nil {
		return err
	}
	if c.replies < held {
		return nil
	}
	return c.spend()
}

func (c *conn) widen(f *http2.WindowUpdateFrame) error {
	if f.StreamID == 0 {
		if c.peer.send += int64(f.Increment); c.peer.send > maxWindow {
			return failure{http2.ErrCodeFlowControl, "the connection's window is too large"}
		}
		c.pump()
		return nil
	}
	if c.isIdle(f.StreamID) {
		return protocol("WINDOW_UPDATE of a stream that was never begun")
	}
	s := c.streams.find(f.StreamID)
	if s == nil {
		return nil // it was closed while the frame was on its way
	}
	if s.send += int64(f.Increment); s.send > maxWindow {
		return c.reset(f.StreamID, http2.ErrCodeFlowControl)
	}
	if len(s.held) > 0 {
		c.release(s)
	}
	return nil
}

func (c *conn) onZeroIncrement(id uint32) error {
	if c.isIdle(id) {
		return protocol("WINDOW_UPDATE of a stream that was never begun")
	}
	return c.reset(id, http2.ErrCodeProtocol)
}

func (c *conn) onData(f *http2.DataFrame) error {
	size := int64(f.Length)
	if c.receive -= size; c.receive < 0 {
		return failure{http2.ErrCodeFlowControl, "more than the connection's window"}
	}
	if c.receive < connectionWindow/2 {
		_ = c.framer.WriteWindowUpdate(0, uint32(connectionWindow-c.receive)) //nolint:gosec // at most the window
		c.receive = connectionWindow
	}
	if len(f.Data()) == 0 && !f.StreamEnded() {
		if err := c.spend(); err != nil {
			return err
		}
	}
	s := c.streams.find(f.StreamID)
	if s == nil {
		return c.onLateData(f.StreamID)
	}
	if s.ended {
		return c.reset(s.id, http2.ErrCodeStreamClosed)
	}
	if s.receive -= size; s.receive < 0 {
		return c.reset(s.id, http2.ErrCodeFlowControl)
	}
	return c.onBody(s, f)
}

// onLateData handles DATA of a stream that is not open.
func (c *conn) onLateData(id uint32) error {
	switch {
	case c.ignored(id):
		return nil
	case c.isIdle(id):
		return protocol("DATA of a stream that was never begun")
	case c.closed.find(id) == endReset:
		return nil // sent before the peer knew
	}
	return c.reset(id, http2.ErrCodeStreamClosed)
}

// isIdle reports whether no stream of that id was begun.
func (c *conn) isIdle(id uint32) bool {
	return id%2 == 0 || (id > c.last && !c.going.final)
}

// ignored reports whether a stream was begun after the GOAWAY that refuses such.
func (c *conn) ignored(id uint32) bool { return c.going.final && id > c.last && id%2 == 1 }

// reset ends a stream, open or not, by RST_STREAM.
func (c *conn) reset(id uint32, code http2.ErrCode) error {
	_ = c.framer.WriteRSTStream(id, code)
	if s := c.streams.find(id); s != nil {
		c.close(s, endReset)
	}
	return c.spend()
}

// close forgets a stream.
func (c *conn) close(s *stream, e end) {
	c.bodies -= len(s.body)
	c.replies -= len(s.held)
	c.closed.add(s.id, e)
	c.streams.remove(s)
}
