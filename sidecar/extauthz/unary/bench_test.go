package unary

import (
	"bytes"
	"context"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
)

// request of about the size that Envoy sends for a small HTTP request.
func request800() []byte { return bytes.Repeat([]byte("x"), 800) }

// BenchmarkCall is one call through the wire's code alone, no system call.
func BenchmarkCall(b *testing.B) {
	s := new(script)
	c := newConn(New(methods(), Options{}), s)
	c.settled = true
	var sent bytes.Buffer
	w := http2.NewFramer(&sent, nil)
	block := (&raw{t: b}).literal(echo)
	body := message(string(request800()))
	id := uint32(1)
	b.ReportAllocs()
	for b.Loop() {
		sent.Reset()
		_ = w.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block, EndHeaders: true})
		_ = w.WriteData(id, true, body)
		id += 2
		c.peer.send = initialWindow
		s.Reset(sent.Bytes())
		c.answerTwoFrames(b)
	}
}

// BenchmarkServer compares with grpc-go, both with a handler that does nothing, in one process with the
// same client, which costs most: 32 calls under way on one connection, written together as Envoy does. Use
// the CPU time that a profile gives to each side for more than a rough ratio.
func BenchmarkServer(b *testing.B) {
	b.Run("unary", func(b *testing.B) { benchmark(b, listen(b, Options{})) })
	b.Run("grpc-go", func(b *testing.B) { benchmark(b, stock(b, methods())) })
}

func benchmark(b *testing.B, path string) {
	const together = 32
	c := dial(b, path, window(1<<30))
	_ = c.nc.SetDeadline(time.Time{})
	_ = c.framer.WriteWindowUpdate(0, 1<<30)
	var sent bytes.Buffer
	w := http2.NewFramer(&sent, nil)
	c.framer.ReadMetaHeaders = nil
	c.framer.SetReuseFrames()
	block := c.literal(echo)
	body := message(string(request800()))
	id := uint32(1)
	for b.Loop() {
		sent.Reset()
		for range together {
			_ = w.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block, EndHeaders: true})
			_ = w.WriteData(id, true, body)
			id += 2
		}
		_ = w.WriteWindowUpdate(0, uint32(together*len(body)))
		c.write(sent.Bytes())
		for answered := 0; answered < together; {
			f, err := c.framer.ReadFrame()
			if err != nil {
				b.Fatal(err)
			}
			if p, ok := f.(*http2.PingFrame); ok && !p.IsAck() {
				_ = c.framer.WritePing(true, p.Data)
			}
			if h, ok := f.(*http2.HeadersFrame); ok && h.StreamEnded() {
				answered++
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*together), "ns/call")
}

// BenchmarkClient compares by grpc-go's own client, 32 callers at once.
func BenchmarkClient(b *testing.B) {
	for name, start := range map[string]func() string{
		"unary":   func() string { return listen(b, Options{}) },
		"grpc-go": func() string { return stock(b, methods()) },
	} {
		b.Run(name, func(b *testing.B) {
			cc := client(b, start())
			body := request800()
			var callers sync.WaitGroup
			n := b.N
			b.ResetTimer()
			for i := range 32 {
				callers.Go(func() {
					for j := i; j < n; j += 32 {
						if _, err := invoke(context.Background(), cc, echo, body); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			callers.Wait()
		})
	}
}
