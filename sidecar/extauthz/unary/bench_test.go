package unary

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"google.golang.org/grpc"
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

// BenchmarkServer compares with grpc-go, both with a handler that does nothing: 1 or 32 calls under way on
// one connection, written together as Envoy does. CPU is that of the process, so of a client too, which costs
// little: it sends ready bytes and looks at frames' headers alone.
func BenchmarkServer(b *testing.B) {
	for _, together := range []int{1, 32} {
		b.Run(fmt.Sprintf("unary/%d", together), func(b *testing.B) { benchmark(b, listen(b, Options{}), together) })
		b.Run(fmt.Sprintf("grpc-go/%d", together), func(b *testing.B) { benchmark(b, stock(b, methods(), workers()), together) })
	}
}

func benchmark(b *testing.B, path string, together int) {
	c := dial(b, path, window(1<<30))
	_ = c.nc.SetDeadline(time.Time{})
	_ = c.framer.WriteWindowUpdate(0, 1<<30)
	var sent bytes.Buffer
	w := http2.NewFramer(&sent, nil)
	in := bufio.NewReaderSize(c.nc, 64<<10)
	frames := http2.NewFramer(c.nc, in)
	block := c.literal(echo)
	body := message(string(request800()))
	id := uint32(1)
	before := cpu(b)
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
			h, err := frames.ReadFrameHeader()
			if err != nil {
				b.Fatal(err)
			}
			if _, err := in.Discard(int(h.Length)); err != nil {
				b.Fatal(err)
			}
			if h.Type == http2.FrameHeaders && h.Flags.Has(http2.FlagHeadersEndStream) {
				answered++
			}
		}
	}
	b.ReportMetric(float64((cpu(b)-before).Nanoseconds())/float64(b.N*together), "cpu-ns/call")
}

// workers is how sidecar/extauthz runs grpc-go.
func workers() grpc.ServerOption {
	return grpc.NumStreamWorkers(uint32(runtime.GOMAXPROCS(0))) //nolint:gosec // a small number
}

// cpu is what the process has used.
func cpu(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkClient compares by grpc-go's own client, 32 callers at once.
func BenchmarkClient(b *testing.B) {
	for name, start := range map[string]func() string{
		"unary":   func() string { return listen(b, Options{}) },
		"grpc-go": func() string { return stock(b, methods(), workers()) },
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
