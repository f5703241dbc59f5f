package unary

import (
	"fmt"
	"slices"
	"testing"

	"golang.org/x/net/http2"
	"google.golang.org/grpc/codes"
)

func window(size uint32) http2.Setting {
	return http2.Setting{ID: http2.SettingInitialWindowSize, Val: size}
}

// A reply waits for the peer's windows, byte by byte if need be, while other calls go on.
func TestReplyWaitsForWindows(t *testing.T) {
	c := dial(t, listen(t, Options{}), window(7))
	c.ask(1, echo, "hello")
	c.want("1 headers status=200 content-type=application/grpc", fmt.Sprintf("1 data %q", message("hello")[:7]))
	c.ask(3, echo, "") // fits
	c.answered(3, "")
	c.ok(c.framer.WriteWindowUpdate(1, 1))
	c.want(`1 data "l"`)
	c.ok(c.framer.WriteSettings(window(6))) // below what was used
	c.ok(c.framer.WriteWindowUpdate(1, 1))
	c.ok(c.framer.WritePing(false, [8]byte{}))
	c.want("ping \x00\x00\x00\x00\x00\x00\x00\x00 ack=true") // nothing else came
	c.ok(c.framer.WriteSettings(window(100)))
	c.want(`1 data "lo"`, "1 headers grpc-status=0 end")
}

// The connection's window holds replies of several streams, which end in the order they began.
func TestReplyWaitsForTheConnectionsWindow(t *testing.T) {
	c := dial(t, listen(t, Options{}), window(1<<20))
	c.ask(1, repeat, "\x00\x01\x00\x00")
	c.ask(3, repeat, "\x00\x00\x00\x10")
	c.ask(5, failed, "no window needed")
	for range 1 + 4 { // headers, and 65,535 bytes in four frames
		c.next()
	}
	c.want("3 headers status=200 content-type=application/grpc", refused(5, codes.Unavailable, "no window needed"))
	c.ok(c.framer.WriteWindowUpdate(0, 6+10))
	c.want(fmt.Sprintf("1 data %q", make([]byte, 6)), "1 headers grpc-status=0 end",
		fmt.Sprintf("3 data %q", append([]byte{0, 0, 0, 0, 16}, make([]byte, 5)...)))
	c.ok(c.framer.WriteRSTStream(3, http2.ErrCodeCancel))
	c.ok(c.framer.WriteWindowUpdate(0, 1000))
	c.ask(7, echo, "x")
	c.answered(7, "x") // nothing more of 3
}

// What waits for windows is bounded; a call beyond it is refused, and those that wait are not lost.
func TestRepliesHeldAreBounded(t *testing.T) {
	const size = 1 << 16
	c := dial(t, listen(t, Options{MaxMessage: size}), window(0))
	for id := uint32(1); id <= 2*maxReplies-1; id += 2 {
		c.ask(id, repeat, "\x00\x01\x00\x00")
		c.want(fmt.Sprintf("%d headers status=200 content-type=application/grpc", id))
	}
	c.ask(99, repeat, "\x00\x01\x00\x00")
	c.want(refused(99, codes.ResourceExhausted, "too much of replies waits for this connection's windows"))
	c.ok(c.framer.WriteWindowUpdate(0, 1<<20))
	c.ok(c.framer.WriteWindowUpdate(3, 1<<20))
	if n := c.whole(3); n != size+prefixSize {
		t.Fatalf("%d bytes", n)
	}
	c.ask(101, repeat, "\x00\x01\x00\x00")
	c.want("101 headers status=200 content-type=application/grpc")
	c.ok(c.framer.WriteRSTStream(1, http2.ErrCodeCancel)) // what it held is free again
	c.ask(103, repeat, "\x00\x01\x00\x00")
	c.want("103 headers status=200 content-type=application/grpc")
}

// Bodies that do not end are bounded by bytes for a connection.
func TestBodiesHeldAreBounded(t *testing.T) {
	c := dial(t, listen(t, Options{MaxMessage: 1 << 14}))
	part := message(string(make([]byte, 1<<14)))[:maxFrame]
	for id := uint32(1); id <= 2*maxBodies-1; id += 2 {
		c.headers(id, false, call(echo)...)
		c.data(id, false, part)
	}
	c.headers(99, false, call(echo)...)
	c.data(99, false, part)
	c.want(refused(99, codes.ResourceExhausted, "too much of requests under way on this connection"), "99 reset NO_ERROR")
	c.ok(c.framer.WriteRSTStream(1, http2.ErrCodeCancel))
	c.headers(101, false, call(echo)...)
	c.data(101, false, part)
	c.data(101, true, make([]byte, prefixSize))
	c.want("101 headers status=200 content-type=application/grpc") // what the first held is free again
}

// A peer that heeds its windows can send all it has: padding, and bodies longer than the windows.
func TestReceiveWindows(t *testing.T) {
	path := listen(t, Options{MaxMessage: 1 << 10})
	t.Run("updates", func(t *testing.T) {
		c := dial(t, path)
		c.t = t
		c.headers(1, false, call(echo)...)
		pad := make([]byte, 255)
		for range 129 { // 256 bytes each: more than half of the window in all
			c.ok(c.framer.WriteDataPadded(1, false, nil, pad))
		}
		c.want(fmt.Sprintf("1 window +%d", 129*256))
		c.data(1, true, message("x"))
		c.answered(1, "x")
	})
	t.Run("a long body", func(t *testing.T) { // longer than all windows, and dropped as it comes
		c := dial(t, path)
		c.t = t
		c.headers(1, false, ":method: GET", ":scheme: http", ":path: /")
		const frames = connectionWindow/maxFrame + 100
		go func() { // while updates are read; an error shows there
			for i := range frames {
				_ = c.framer.WriteData(1, i == frames-1, make([]byte, maxFrame))
			}
		}()
		granted := map[uint32]uint32{}
		for {
			f, err := c.framer.ReadFrame()
			c.ok(err)
			if u, ok := f.(*http2.WindowUpdateFrame); ok {
				granted[u.StreamID] += u.Increment
			}
			if g, ok := f.(*http2.GoAwayFrame); ok {
				t.Fatalf("%v %q", g.ErrCode, g.DebugData())
			}
			if d, ok := f.(*http2.DataFrame); ok && d.StreamEnded() {
				break
			}
		}
		for id := range uint32(2) {
			if initialWindow+int(granted[id]) < frames*maxFrame {
				t.Errorf("stream %d: a peer that heeds its windows could not have sent all", id)
			}
		}
	})
}

// A peer that changes its table's size is told in the next block that none of it is used.
func TestTableSizeIsAcknowledged(t *testing.T) {
	c := dial(t, listen(t, Options{}), http2.Setting{ID: http2.SettingHeaderTableSize, Val: 0})
	c.framer.ReadMetaHeaders = nil
	c.ask(1, echo, "x")
	c.ask(3, echo, "x")
	var updates []bool
	for len(updates) < 4 {
		f, err := c.framer.ReadFrame()
		c.ok(err)
		if h, ok := f.(*http2.HeadersFrame); ok {
			updates = append(updates, h.HeaderBlockFragment()[0] == 0x20)
		}
	}
	if !slices.Equal(updates, []bool{true, false, false, false}) {
		t.Fatal(updates)
	}
}
