package unary

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc/codes"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("github.com/weirproxy/weir/test/parts.spawnForever")) // one a process
}

// patience is how long a test waits for what must come: far longer than it takes.
const patience = 30 * time.Second

const (
	echo   = "/test.Test/Echo"
	failed = "/test.Test/Fail"
	panics = "/test.Test/Panic"
	repeat = "/test.Test/Repeat"
	drops  = "/test.Test/Drop"
)

// methods of the tests: Echo answers its request, Repeat as many bytes as the request says in 4 bytes.
func methods() Methods {
	return Methods{
		echo: func(request, reply []byte) ([]byte, codes.Code, string) {
			return append(reply, request...), codes.OK, ""
		},
		failed: func(request, _ []byte) ([]byte, codes.Code, string) {
			return nil, codes.Unavailable, string(request)
		},
		panics: func([]byte, []byte) ([]byte, codes.Code, string) { panic("of a test") },
		repeat: func(request, reply []byte) ([]byte, codes.Code, string) {
			return append(reply, make([]byte, binary.BigEndian.Uint32(request))...), codes.OK, ""
		},
		drops:       func([]byte, []byte) ([]byte, codes.Code, string) { return nil, codes.OK, "" },
		HealthCheck: Health(func(service string) (serving, known bool) { return service == "", service != "unknown" }),
	}
}

// listen returns the address of a server that ends with the test.
func listen(t testing.TB, o Options) string {
	t.Helper()
	path, stop := start(t, New(methods(), o))
	t.Cleanup(stop)
	return path
}

// start serves on a unix socket. Stop ends it and waits.
func start(t testing.TB, s *Server) (path string, stop func()) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, l) }()
	return path, func() {
		cancel()
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
	}
}

// raw is a client that sends what it is told, and reads one frame at a time.
type raw struct {
	t      testing.TB
	nc     net.Conn
	framer *http2.Framer
	buf    bytes.Buffer
	hpack  *hpack.Encoder
}

// dial connects, and sends the preface and SETTINGS.
func dial(t testing.TB, path string, settings ...http2.Setting) *raw {
	t.Helper()
	c := connect(t, path)
	c.write([]byte(http2.ClientPreface))
	c.ok(c.framer.WriteSettings(settings...))
	return c
}

func connect(t testing.TB, path string) *raw {
	t.Helper()
	nc, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = nc.Close() })
	_ = nc.SetDeadline(time.Now().Add(patience))
	return newRaw(t, nc)
}

func newRaw(t testing.TB, nc net.Conn) *raw {
	c := &raw{t: t, nc: nc, framer: http2.NewFramer(nc, nc)}
	c.framer.AllowIllegalWrites = true
	c.framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	c.hpack = hpack.NewEncoder(&c.buf)
	return c
}

func (c *raw) ok(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

func (c *raw) write(b []byte) {
	c.t.Helper()
	_, err := c.nc.Write(b)
	c.ok(err)
}

// block encodes "name: value" lines.
func (c *raw) block(lines ...string) []byte {
	c.buf.Reset()
	for _, line := range lines {
		i := strings.Index(line[1:], ":") + 1
		c.ok(c.hpack.WriteField(hpack.HeaderField{Name: line[:i], Value: strings.TrimPrefix(line[i+1:], " ")}))
	}
	return bytes.Clone(c.buf.Bytes())
}

func call(path string, more ...string) []string {
	return append([]string{":method: POST", ":scheme: http", ":path: " + path, ":authority: test",
		"content-type: application/grpc", "te: trailers"}, more...)
}

func (c *raw) headers(id uint32, last bool, lines ...string) {
	c.t.Helper()
	c.ok(c.framer.WriteHeaders(http2.HeadersFrameParam{
		StreamID: id, BlockFragment: c.block(lines...), EndHeaders: true, EndStream: last,
	}))
}

func (c *raw) data(id uint32, last bool, b []byte) {
	c.t.Helper()
	c.ok(c.framer.WriteData(id, last, b))
}

func message(b string) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(b))), b...)
}

// ask makes a call of one message.
func (c *raw) ask(id uint32, path, request string) {
	c.t.Helper()
	c.headers(id, false, call(path)...)
	c.data(id, true, message(request))
}

// next returns the next frame that is no SETTINGS, its ACK, or WINDOW_UPDATE of the connection, as text;
// "closed" at the end.
func (c *raw) next() string {
	c.t.Helper()
	for {
		f, err := c.framer.ReadFrame()
		if err != nil {
			if nerr, ok := err.(net.Error); ok && nerr.Timeout() { //nolint:errorlint // as it comes
				c.t.Fatal("nothing came")
			}
			return "closed"
		}
		if text := describe(f); text != "" {
			return text
		}
	}
}

func describe(f http2.Frame) string {
	switch f := f.(type) {
	case *http2.SettingsFrame:
		return ""
	case *http2.WindowUpdateFrame:
		if f.StreamID == 0 {
			return ""
		}
		return fmt.Sprintf("%d window +%d", f.StreamID, f.Increment)
	case *http2.MetaHeadersFrame:
		var b strings.Builder
		for _, field := range f.Fields {
			fmt.Fprintf(&b, " %s=%s", strings.TrimPrefix(field.Name, ":"), field.Value)
		}
		return fmt.Sprintf("%d headers%s%s", f.StreamID, b.String(), ended(f.StreamEnded()))
	case *http2.DataFrame:
		return fmt.Sprintf("%d data %q%s", f.StreamID, f.Data(), ended(f.StreamEnded()))
	case *http2.RSTStreamFrame:
		return fmt.Sprintf("%d reset %v", f.StreamID, f.ErrCode)
	case *http2.GoAwayFrame:
		return fmt.Sprintf("goaway %d %v", f.LastStreamID, f.ErrCode)
	case *http2.PingFrame:
		return fmt.Sprintf("ping %s ack=%v", f.Data[:], f.IsAck())
	}
	return f.Header().String()
}

func ended(last bool) string {
	if last {
		return " end"
	}
	return ""
}

// want reads the frames that are to come next, and nothing else.
func (c *raw) want(frames ...string) {
	c.t.Helper()
	for _, want := range frames {
		if got := c.next(); got != want {
			c.t.Fatalf("got  %s\nwant %s", got, want)
		}
	}
}

// answered reads the frames of a call that was answered.
func (c *raw) answered(id uint32, reply string) {
	c.t.Helper()
	c.want(
		fmt.Sprintf("%d headers status=200 content-type=application/grpc", id),
		fmt.Sprintf("%d data %q", id, message(reply)),
		fmt.Sprintf("%d headers grpc-status=0 end", id),
	)
}

func refused(id uint32, code codes.Code, reason string) string {
	return fmt.Sprintf("%d headers status=200 content-type=application/grpc grpc-status=%d grpc-message=%s end", id, code, reason)
}

// whole reads the rest of a reply's data, after its headers, and its trailers.
func (c *raw) whole(id uint32) int {
	c.t.Helper()
	n := 0
	for {
		f, err := c.framer.ReadFrame()
		c.ok(err)
		if d, ok := f.(*http2.DataFrame); ok {
			n += len(d.Data())
		}
		if h, ok := f.(*http2.MetaHeadersFrame); ok && h.StreamEnded() {
			return n
		}
	}
}
