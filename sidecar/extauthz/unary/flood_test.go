package unary

import (
	"bytes"
	"encoding/binary"
	"testing"

	"golang.org/x/net/http2"
)

// Frames that lead to no answer are bounded in number between two calls.
func TestFloods(t *testing.T) {
	frame := func(typ http2.FrameType, flags http2.Flags, id uint32, payload []byte) []byte {
		var b bytes.Buffer
		f := http2.NewFramer(&b, nil)
		f.AllowIllegalWrites = true
		if err := f.WriteRawFrame(typ, flags, id, payload); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	block := (&raw{t: t}).literal(echo)
	headers := func(i int, flags http2.Flags) []byte { return frame(http2.FrameHeaders, flags, uint32(2*i+1), block) }
	cases := map[string]func(i int) []byte{
		"rapid reset": func(i int) []byte {
			return append(headers(i, http2.FlagHeadersEndHeaders), frame(http2.FrameRSTStream, 0, uint32(2*i+1), make([]byte, 4))...)
		},
		"refused streams": func(i int) []byte { return headers(i, http2.FlagHeadersEndHeaders) },
		"malformed streams": func(i int) []byte {
			return frame(http2.FrameHeaders, http2.FlagHeadersEndHeaders, uint32(2*i+1), block[:2])
		},
		"pings":    func(int) []byte { return frame(http2.FramePing, 0, 0, make([]byte, 8)) },
		"settings": func(int) []byte { return frame(http2.FrameSettings, 0, 0, nil) },
		"updates":  func(int) []byte { return frame(http2.FrameWindowUpdate, 0, 0, []byte{0, 0, 0, 1}) },
		"unknown":  func(int) []byte { return frame(0xbe, 0, 0, nil) },
		"empty data": func(i int) []byte {
			if i == 0 {
				return headers(0, http2.FlagHeadersEndHeaders)
			}
			return frame(http2.FrameData, 0, 1, nil)
		},
		"empty continuation": func(i int) []byte {
			if i == 0 {
				return headers(0, 0)
			}
			return frame(http2.FrameContinuation, 0, 1, nil)
		},
		"continuation": func(i int) []byte {
			if i == 0 {
				return headers(0, 0)
			}
			return frame(http2.FrameContinuation, 0, 1, bytes.Repeat([]byte{0x83}, 8<<10))
		},
	}
	path := listen(t, Options{})
	for name, next := range cases {
		t.Run(name, func(t *testing.T) {
			c := dial(t, path)
			c.t = t
			go func() { // until the server ends the connection
				for i := range 1_000_000 {
					if _, err := c.nc.Write(next(i)); err != nil {
						return
					}
				}
			}()
			for {
				f, err := c.framer.ReadFrame()
				if err != nil {
					t.Fatalf("no GOAWAY: %v", err)
				}
				if g, ok := f.(*http2.GoAwayFrame); ok {
					if g.ErrCode != http2.ErrCodeEnhanceYourCalm {
						t.Fatalf("%v %q", g.ErrCode, g.DebugData())
					}
					_ = c.nc.Close()
					return
				}
			}
		})
	}
}

// literal is the block of a call that needs no table.
func (c *raw) literal(path string) []byte {
	b := append([]byte{0x83, 0x86, 0x04, byte(len(path))}, path...)
	return append(append(b, 0x0f, 0x10, 16), "application/grpc"...)
}

// FuzzFrames sends bytes to a connection: it ends when they do, and the server neither panics nor waits.
func FuzzFrames(f *testing.F) {
	f.Add([]byte(nil))
	for _, seed := range seeds(f) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, sent []byte) {
		near, far := pipe(t)
		done := make(chan struct{})
		go func() {
			defer close(done)
			newConn(New(methods(), Options{MaxMessage: 1 << 12, MaxStreams: 8, MaxHeaders: 1 << 12}), far).serve()
			_ = far.Close()
		}()
		drained := make(chan struct{})
		go func() { defer close(drained); readAll(t, near) }()
		_, _ = near.Write([]byte(http2.ClientPreface))
		_, _ = near.Write([]byte{0, 0, 0, 4, 0, 0, 0, 0, 0})
		_, _ = near.Write(sent)
		_ = near.CloseWrite()
		<-done
		<-drained
	})
}

func seeds(f *testing.F) [][]byte {
	var b bytes.Buffer
	w := http2.NewFramer(&b, nil)
	w.AllowIllegalWrites = true
	block := (&raw{t: f}).literal(echo)
	var all [][]byte
	add := func(write func()) {
		b.Reset()
		write()
		all = append(all, bytes.Clone(b.Bytes()))
	}
	ask := func(id uint32, request []byte) {
		_ = w.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block, EndHeaders: true})
		_ = w.WriteData(id, true, request)
	}
	add(func() { ask(1, message("hello")); ask(3, message("again")); ask(5, message("")) })
	add(func() {
		_ = w.WriteSettings(window(1))
		ask(1, message("hello"))
		_ = w.WriteWindowUpdate(1, 100)
		_ = w.WriteSettings(window(0), http2.Setting{ID: http2.SettingHeaderTableSize, Val: 0})
		_ = w.WriteRSTStream(1, http2.ErrCodeCancel)
	})
	add(func() {
		_ = w.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block[:5], PadLength: 3})
		_ = w.WriteContinuation(1, true, block[5:])
		_ = w.WriteDataPadded(1, false, message("hello")[:3], make([]byte, 9))
		_ = w.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: []byte{0x40, 1, 'a', 1, 'b'}, EndHeaders: true, EndStream: true})
	})
	add(func() {
		_ = w.WritePing(false, [8]byte{})
		_ = w.WriteGoAway(0, 0, nil)
		_ = w.WritePriority(1, http2.PriorityParam{StreamDep: 1})
		_ = w.WritePushPromise(http2.PushPromiseParam{StreamID: 1, PromiseID: 2, EndHeaders: true})
	})
	add(func() { ask(1, binary.BigEndian.AppendUint32([]byte{1}, 1<<31)) })
	return all
}
