package unary

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/http2"
	"google.golang.org/grpc/codes"
)

// What a peer sends, and every frame that comes back but SETTINGS and updates of the connection's window.
func TestProtocol(t *testing.T) {
	reset := func(id int, code http2.ErrCode) []string { return []string{fmt.Sprintf("%d reset %v", id, code)} }
	away := func(last int, code http2.ErrCode) []string {
		return []string{fmt.Sprintf("goaway %d %v", last, code), "closed"}
	}
	text := func(id, status int) []string {
		return []string{
			fmt.Sprintf("%d headers status=%d content-type=text/plain; charset=utf-8", id, status),
			fmt.Sprintf("%d data %q", id, "this server answers gRPC calls only\n"), fmt.Sprintf("%d data \"\" end", id),
		}
	}
	reply := func(id int, s string) []string {
		return []string{
			fmt.Sprintf("%d headers status=200 content-type=application/grpc", id),
			fmt.Sprintf("%d data %q", id, message(s)), fmt.Sprintf("%d headers grpc-status=0 end", id),
		}
	}
	open := func(c *raw) { c.headers(1, false, call(echo)...) }
	request := func(id uint32, lines ...string) func(*raw) { return func(c *raw) { c.headers(id, true, lines...) } }

	cases := []struct {
		name string
		send func(*raw)
		want []string
	}{
		// Calls.
		{"a call", func(c *raw) { c.ask(1, echo, "hello") }, reply(1, "hello")},
		{"an empty message", func(c *raw) { c.ask(1, echo, "") }, reply(1, "")},
		{"padding", func(c *raw) {
			c.ok(c.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: c.block(call(echo)...), EndHeaders: true, PadLength: 9}))
			c.ok(c.framer.WriteDataPadded(1, true, message("hello"), make([]byte, 200)))
		}, reply(1, "hello")},
		{"priority", func(c *raw) {
			c.ok(c.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: c.block(call(echo)...), EndHeaders: true,
				Priority: http2.PriorityParam{StreamDep: 3, Weight: 7}}))
			c.ok(c.framer.WritePriority(1, http2.PriorityParam{StreamDep: 5}))
			c.data(1, true, message("hello"))
		}, reply(1, "hello")},
		{"headers in pieces", func(c *raw) {
			b := c.block(call(echo)...)
			c.ok(c.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: b[:1]}))
			for i := 1; i < len(b); i += 2 {
				c.ok(c.framer.WriteContinuation(1, false, b[i:min(i+2, len(b))]))
			}
			c.ok(c.framer.WriteContinuation(1, true, nil))
			c.data(1, true, message("hello"))
		}, reply(1, "hello")},
		{"a body in pieces, its end apart", func(c *raw) {
			open(c)
			for _, b := range message("hello") {
				c.data(1, false, []byte{b})
			}
			c.data(1, true, nil)
		}, reply(1, "hello")},
		{"trailers", func(c *raw) { open(c); c.data(1, false, message("hello")); c.headers(1, true, "x-more: 1") }, reply(1, "hello")},
		{"content length", func(c *raw) {
			c.headers(1, false, call(echo, "content-length: 10")...)
			c.data(1, true, message("hello"))
		}, reply(1, "hello")},
		{"two at once, the later first", func(c *raw) {
			open(c)
			c.ask(3, echo, "second")
			c.data(1, true, message("first"))
		}, append(reply(3, "second"), reply(1, "first")...)},
		{"a codec's name", func(c *raw) {
			lines := call(echo)
			lines[4] = "content-type: application/grpc+proto"
			c.headers(1, false, lines...)
			c.data(1, true, message("x"))
		}, reply(1, "x")},
		{"ping", func(c *raw) { c.ok(c.framer.WritePing(false, [8]byte{'1', '2', '3', '4', '5', '6', '7', '8'})) },
			[]string{"ping 12345678 ack=true"}},
		{"unknown frames and settings", func(c *raw) {
			c.ok(c.framer.WriteRawFrame(0xbe, 0xff, 0, []byte("x")))
			c.ok(c.framer.WriteSettings(http2.Setting{ID: 0xbeef, Val: 1}))
			c.ok(c.framer.WriteGoAway(0, http2.ErrCodeNo, nil))
			c.ask(1, echo, "hello")
		}, reply(1, "hello")},
		{"reset, then another", func(c *raw) { open(c); c.ok(c.framer.WriteRSTStream(1, http2.ErrCodeCancel)); c.ask(3, echo, "x") }, reply(3, "x")},

		// Calls that are answered by a status.
		{"unknown method, at once", func(c *raw) { c.headers(1, false, call("/no.Such/Method")...) },
			[]string{refused(1, codes.Unimplemented, "unknown method"), "1 reset NO_ERROR"}},
		{"the handler's own status", func(c *raw) { c.ask(1, failed, "50% of \x01é") }, []string{refused(1, codes.Unavailable, "50%25 of %01%C3%A9")}},
		{"a panic", func(c *raw) { c.ask(1, panics, ""); c.ask(3, echo, "x") },
			append([]string{refused(1, codes.Internal, "the call failed inside")}, reply(3, "x")...)},
		{"a handler that drops the reply", func(c *raw) { c.ask(1, drops, "") },
			[]string{refused(1, codes.Internal, "the handler dropped the reply it was given")}},
		{"compressed", func(c *raw) { open(c); c.data(1, true, []byte{1, 0, 0, 0, 0}) },
			[]string{refused(1, codes.Unimplemented, "compressed messages are not supported")}},
		{"malformed prefix", func(c *raw) { open(c); c.data(1, true, []byte{2, 0, 0, 0, 0}) }, []string{refused(1, codes.Internal, "malformed message")}},
		{"too large, before it is there", func(c *raw) {
			open(c)
			c.data(1, false, []byte{0, 0, 0, 16, 1})
			c.data(1, false, []byte("more"))
			c.ask(3, echo, "x")
		},
			append([]string{refused(1, codes.ResourceExhausted, "message larger than the server takes"), "1 reset NO_ERROR"}, reply(3, "x")...)},
		{"no message", request(1, call(echo)...), []string{refused(1, codes.Internal, "no message")}},
		{"part of a prefix", func(c *raw) { open(c); c.data(1, true, []byte{0, 0}) }, []string{refused(1, codes.Internal, "no message")}},
		{"part of a message", func(c *raw) { open(c); c.data(1, true, message("hello")[:8]) }, []string{refused(1, codes.Internal, "not exactly one message")}},
		{"two messages", func(c *raw) { open(c); c.data(1, true, append(message("a"), message("b")...)) }, []string{refused(1, codes.Internal, "not exactly one message")}},
		{"two messages, apart", func(c *raw) { open(c); c.data(1, false, message("a")); c.data(1, false, message("b")) },
			[]string{refused(1, codes.Internal, "more than one message"), "1 reset NO_ERROR"}},
		{"a reply too large", func(c *raw) { c.ask(1, repeat, "\x00\x00\x10\x01") }, []string{refused(1, codes.ResourceExhausted, "reply larger than the server sends")}},
		{"health", func(c *raw) { c.ask(1, HealthCheck, "") }, reply(1, "\x08\x01")},
		{"health of an unknown service", func(c *raw) { c.ask(1, HealthCheck, "\x0a\x07unknown") }, []string{refused(1, codes.NotFound, "unknown service")}},

		// Not gRPC.
		{"GET", request(1, ":method: GET", ":scheme: http", ":path: /"), text(1, 405)},
		{"HEAD", request(1, ":method: HEAD", ":scheme: http", ":path: /"), []string{"1 headers status=405 content-type=text/plain; charset=utf-8 end"}},
		{"CONNECT", request(1, ":method: CONNECT", ":authority: x"), text(1, 405)},
		{"another content type", request(1, ":method: POST", ":scheme: http", ":path: "+echo, "content-type: application/grpcx"), text(1, 415)},
		{"a list too long", request(1, call(echo, "x: "+strings.Repeat("x", 2000), "y: "+strings.Repeat("y", 2000))...), text(1, 431)},

		// Malformed requests cost the stream.
		{"no path", request(1, ":method: POST", ":scheme: http"), reset(1, http2.ErrCodeProtocol)},
		{"empty path", request(1, ":method: POST", ":scheme: http", ":path: "), reset(1, http2.ErrCodeProtocol)},
		{"a path twice", request(1, call(echo, ":path: /")...), reset(1, http2.ErrCodeProtocol)},
		{"unknown pseudo-header", request(1, ":method: POST", ":x: y", ":scheme: http", ":path: /"), reset(1, http2.ErrCodeProtocol)},
		{"pseudo-header after others", request(1, ":method: POST", ":scheme: http", "a: b", ":path: /"), reset(1, http2.ErrCodeProtocol)},
		{"upper case", request(1, call(echo, "X-A: b")...), reset(1, http2.ErrCodeProtocol)},
		{"connection header", request(1, call(echo, "connection: close")...), reset(1, http2.ErrCodeProtocol)},
		{"te", request(1, call(echo, "te: gzip")...), reset(1, http2.ErrCodeProtocol)},
		{"a value with a line's end", request(1, call(echo, "a: b\nc")...), reset(1, http2.ErrCodeProtocol)},
		{"less than the content length", func(c *raw) {
			c.headers(1, false, call(echo, "content-length: 11")...)
			c.data(1, true, message("hello"))
		},
			reset(1, http2.ErrCodeProtocol)},
		{"a content length, and no body", request(1, call(echo, "content-length: 1")...), reset(1, http2.ErrCodeProtocol)},
		{"more than the content length", func(c *raw) {
			c.headers(1, false, call(echo, "content-length: 9")...)
			c.data(1, false, message("hello"))
		},
			reset(1, http2.ErrCodeProtocol)},
		{"two content lengths", request(1, call(echo, "content-length: 1", "content-length: 2")...), reset(1, http2.ErrCodeProtocol)},
		{"trailers that do not end", func(c *raw) { open(c); c.headers(1, false, "a: b") }, reset(1, http2.ErrCodeProtocol)},
		{"trailers with a pseudo-header", func(c *raw) { open(c); c.headers(1, true, ":path: /") }, reset(1, http2.ErrCodeProtocol)},
		{"a stream on itself", func(c *raw) {
			c.ok(c.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: c.block(call(echo)...), EndHeaders: true,
				Priority: http2.PriorityParam{StreamDep: 1}}))
		}, reset(1, http2.ErrCodeProtocol)},
		{"no increment", func(c *raw) { open(c); c.ok(c.framer.WriteWindowUpdate(1, 0)) }, reset(1, http2.ErrCodeProtocol)},
		{"a window too large", func(c *raw) { open(c); c.ok(c.framer.WriteWindowUpdate(1, maxWindow)) }, reset(1, http2.ErrCodeFlowControl)},
		{"data after the end", func(c *raw) { c.ask(1, echo, "x"); c.data(1, false, []byte("y")) },
			append(reply(1, "x"), "1 reset STREAM_CLOSED")},
		{"data after a reset", func(c *raw) {
			open(c)
			c.ok(c.framer.WriteRSTStream(1, http2.ErrCodeCancel))
			c.data(1, false, []byte("y"))
		},
			reset(1, http2.ErrCodeStreamClosed)},
		{"late frames of a closed stream", func(c *raw) {
			c.ask(1, echo, "x")
			c.ok(c.framer.WriteWindowUpdate(1, 10))
			c.ok(c.framer.WriteRSTStream(1, http2.ErrCodeCancel))
			c.ask(3, echo, "y")
		}, append(reply(1, "x"), reply(3, "y")...)},
		{"streams beyond the bound", func(c *raw) {
			for id := uint32(1); id < 12; id += 2 {
				c.headers(id, false, call(echo)...)
			}
			c.data(11, true, message("dropped"))
			c.data(1, true, message("x"))
		}, append([]string{"9 reset REFUSED_STREAM", "11 reset REFUSED_STREAM"}, reply(1, "x")...)},

		// What costs the connection.
		{"an even stream", request(2, call(echo)...), away(0, http2.ErrCodeProtocol)},
		{"stream zero", request(0, call(echo)...), away(0, http2.ErrCodeProtocol)},
		{"a stream passed over", func(c *raw) { c.headers(5, false, call(echo)...); c.headers(3, false, call(echo)...) }, away(5, http2.ErrCodeProtocol)},
		{"headers of a closed stream", func(c *raw) { c.ask(1, echo, "x"); c.headers(1, true, call(echo)...) },
			append(reply(1, "x"), away(1, http2.ErrCodeStreamClosed)...)},
		{"data of an idle stream", func(c *raw) { c.data(1, true, nil) }, away(0, http2.ErrCodeProtocol)},
		{"reset of an idle stream", func(c *raw) { c.ok(c.framer.WriteRSTStream(1, 0)) }, away(0, http2.ErrCodeProtocol)},
		{"update of an idle stream", func(c *raw) { c.ok(c.framer.WriteWindowUpdate(1, 1)) }, away(0, http2.ErrCodeProtocol)},
		{"no increment of the connection", func(c *raw) { c.ok(c.framer.WriteWindowUpdate(0, 0)) }, away(0, http2.ErrCodeProtocol)},
		{"the connection's window too large", func(c *raw) { c.ok(c.framer.WriteWindowUpdate(0, maxWindow)) }, away(0, http2.ErrCodeFlowControl)},
		{"a bad setting", func(c *raw) { c.ok(c.framer.WriteSettings(http2.Setting{ID: http2.SettingMaxFrameSize, Val: 1})) }, away(0, http2.ErrCodeProtocol)},
		{"an initial window too large", func(c *raw) {
			open(c)
			c.ok(c.framer.WriteWindowUpdate(1, maxWindow-initialWindow))
			c.ok(c.framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: initialWindow + 1}))
		}, away(1, http2.ErrCodeFlowControl)},
		{"too many settings", func(c *raw) { c.ok(c.framer.WriteSettings(make([]http2.Setting, 100)...)) }, away(0, http2.ErrCodeEnhanceYourCalm)},
		{"a push", func(c *raw) {
			c.ok(c.framer.WritePushPromise(http2.PushPromiseParam{StreamID: 1, PromiseID: 3, EndHeaders: true}))
		}, away(0, http2.ErrCodeProtocol)},
		{"a frame too large", func(c *raw) { open(c); c.data(1, true, make([]byte, maxFrame+1)) }, away(1, http2.ErrCodeFrameSize)},
		{"a ping too short", func(c *raw) { c.ok(c.framer.WriteRawFrame(http2.FramePing, 0, 0, []byte("1234567"))) }, away(0, http2.ErrCodeFrameSize)},
		{"a padded frame without padding", func(c *raw) { open(c); c.ok(c.framer.WriteRawFrame(http2.FrameData, http2.FlagDataPadded, 1, nil)) }, away(1, http2.ErrCodeFrameSize)},
		{"more padding than headers", func(c *raw) {
			c.ok(c.framer.WriteRawFrame(http2.FrameHeaders, http2.FlagHeadersPadded, 1, []byte{9, 0}))
		}, away(0, http2.ErrCodeProtocol)},
		{"a bad block", func(c *raw) {
			c.ok(c.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: []byte{0xff}, EndHeaders: true}))
		},
			away(0, http2.ErrCodeCompression)},
		{"an index of nothing", func(c *raw) {
			c.ok(c.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: []byte{0xbe}, EndHeaders: true}))
		},
			away(0, http2.ErrCodeCompression)},
		{"data within headers", func(c *raw) {
			c.ok(c.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: c.block(call(echo)...)}))
			c.data(1, true, nil)
		}, away(0, http2.ErrCodeProtocol)},
		{"continuation of nothing", func(c *raw) { c.ok(c.framer.WriteContinuation(1, true, nil)) }, away(0, http2.ErrCodeProtocol)},
	}
	path := listen(t, Options{MaxMessage: 4096, MaxStreams: 4, MaxHeaders: 3000})
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			c := dial(t, path)
			c.t = t
			tc.send(c)
			c.want(tc.want...)
			if !slices.Contains(tc.want, "closed") { // it stands, and its tables are in order
				c.ask(101, echo, "still here")
				c.answered(101, "still here")
			}
		})
	}
}

func TestPreface(t *testing.T) {
	path := listen(t, Options{})
	c := connect(t, path)
	c.write([]byte("GET / HTTP/1.1\r\nhost: example\r\n\r\n"))
	c.want("goaway 0 PROTOCOL_ERROR", "closed")

	c = connect(t, path)
	c.write([]byte(http2.ClientPreface))
	c.ok(c.framer.WritePing(false, [8]byte{}))
	c.want("goaway 0 PROTOCOL_ERROR", "closed")
}

// The same block is not decoded twice; others are, whatever came between.
func TestRemembersHeaders(t *testing.T) {
	path := listen(t, Options{})
	c := dial(t, path)
	content := append([]byte{0x0f, 0x10, 16}, "application/grpc"...)
	literal := func(path string) []byte { // without indexing, as Envoy sends a path
		return append(append([]byte{0x83, 0x86, 0x04, byte(len(path))}, path...), content...)
	}
	id := uint32(1)
	ask := func(block []byte, reply string) {
		t.Helper()
		c.ok(c.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block, EndHeaders: true}))
		c.data(id, true, message("x"))
		if reply != "" {
			c.answered(id, reply)
		} else {
			c.want(refused(id, codes.Unavailable, "x"))
		}
		id += 2
	}
	for range 4 {
		ask(literal(echo), "x")
	}
	ask(literal(failed), "")
	ask(literal(echo), "x")

	// A path by its number in the table, which the block's own last field moves: the same bytes mean another
	// path each time.
	for _, p := range []string{failed, echo, failed} {
		block := append([]byte{0x83, 0x86, 0x44, byte(len(p))}, p...)
		ask(append(block, content...), map[bool]string{true: "x"}[p == echo])
	}
	moving := append([]byte{0x83, 0x86, 0xbf}, content...)
	moving = append(moving, 0x40, 1, 'a', 1, 'b')
	ask(moving, "x")
	ask(moving, "")
	c.ok(c.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: moving, EndHeaders: true}))
	c.want(fmt.Sprintf("%d reset PROTOCOL_ERROR", id)) // what it names now is no path
}
