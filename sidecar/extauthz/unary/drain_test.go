package unary

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
)

// The end of Serve refuses nothing that was on its way: GOAWAY with the highest number, and with the last
// one once the peer has answered the ping.
func TestDrain(t *testing.T) {
	path, stop := start(t, New(methods(), Options{Drain: time.Hour}))
	c := dial(t, path)
	c.headers(1, false, call(echo)...)
	c.ask(3, echo, "before")
	c.answered(3, "before")
	stopped := make(chan struct{})
	go func() { defer close(stopped); stop() }()
	c.want("goaway 2147483647 NO_ERROR", "ping weirdone ack=false")
	if _, err := net.Dial("unix", path); err == nil {
		t.Fatal("still listening")
	}
	c.ask(5, echo, "on its way")
	c.answered(5, "on its way")
	c.ok(c.framer.WritePing(true, drainPing()))
	c.want("goaway 5 NO_ERROR")
	c.headers(7, false, call(echo)...) // too late: ignored, and so is what follows
	c.data(7, false, message("x"))
	c.ok(c.framer.WriteWindowUpdate(7, 1))
	c.data(1, true, message("under way"))
	c.answered(1, "under way")
	c.want("closed")
	_ = c.nc.Close()
	<-stopped
}

// A peer that does not go away is closed after the drain time, and a handler's call is not cut short.
func TestDrainEnds(t *testing.T) {
	path, stop := start(t, New(methods(), Options{Drain: 10 * time.Millisecond}))
	quiet := dial(t, path)
	quiet.headers(1, false, call(echo)...)
	quiet.ask(3, echo, "x")
	quiet.answered(3, "x")
	mute := connect(t, path) // no preface
	stop()
	quiet.want("goaway 2147483647 NO_ERROR", "ping weirdone ack=false", "closed")
	for mute.next() != "closed" { // accepted or not yet
	}
}

// An idle connection is told to go, and one that stands still within a frame or a call is ended.
func TestIdle(t *testing.T) {
	path := listen(t, Options{Idle: 50 * time.Millisecond, Drain: time.Hour})
	c := dial(t, path)
	c.want("goaway 2147483647 NO_ERROR", "ping weirdone ack=false")
	c.ask(1, echo, "just then")
	c.answered(1, "just then")
	c.ok(c.framer.WritePing(true, drainPing()))
	c.want("goaway 1 NO_ERROR", "closed")

	c = dial(t, path)
	c.write([]byte{0, 0, 1})
	c.want("goaway 0 ENHANCE_YOUR_CALM", "closed")

	c = dial(t, path)
	c.headers(1, false, call(echo)...)
	c.want("goaway 1 ENHANCE_YOUR_CALM", "closed")

	c = dial(t, listen(t, Options{Idle: 50 * time.Millisecond, Drain: time.Millisecond}))
	c.want("goaway 2147483647 NO_ERROR", "ping weirdone ack=false", "closed")
}

// The idle timeout begins anew with each frame, and with a GOAWAY for good: the call of the server that ends
// a wait may come when its reason is known already.
func TestReadDeadline(t *testing.T) {
	s := new(script)
	c := newConn(New(methods(), Options{Idle: 8 * time.Nanosecond}), s)
	c.settled = true
	for i := range 3 {
		s.Reset([]byte{0, 0, 0, 4, 1, 0, 0, 0, 0}) // SETTINGS' ACK
		if err := c.next(); err != nil || s.armed != i+1 {
			t.Fatalf("%v; armed %d times for %d frames", err, s.armed, i+1)
		}
	}
	c.goAway(time.Time{})
	if err := c.expired(); err != nil {
		t.Fatalf("ended by a late call: %v", err)
	}
	c.going.until = time.Now().Add(-time.Second)
	if err := c.expired(); !errors.Is(err, errOver) {
		t.Fatalf("not ended after its time: %v", err)
	}
}

// A peer that does not read is given up, so that Serve ends though the drain time is long.
func TestSlowReader(t *testing.T) {
	path := listen(t, Options{Write: 50 * time.Millisecond, Drain: time.Hour})
	c := dial(t, path, window(maxWindow))
	c.ok(c.framer.WriteWindowUpdate(0, maxWindow-initialWindow))
	var err error
	for id := uint32(1); err == nil; id += 2 { // until the server ends the connection
		if err = c.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: c.block(call(repeat)...), EndHeaders: true}); err == nil {
			err = c.framer.WriteData(id, true, message("\x00\x10\x00\x00"))
		}
	}
	if nerr, ok := err.(net.Error); ok && nerr.Timeout() { //nolint:errorlint // as it comes
		t.Fatal("the server waits for ever")
	}
}

func TestConnectionsAreBounded(t *testing.T) {
	path := listen(t, Options{MaxConnections: 1})
	first := dial(t, path)
	first.ask(1, echo, "x")
	first.answered(1, "x")
	second := connect(t, path)
	second.want("closed")
	_ = first.nc.Close()
	for {
		c := connect(t, path)
		if _, err := c.nc.Write([]byte(http2.ClientPreface)); err != nil {
			continue
		}
		if c.framer.WriteSettings() != nil {
			continue
		}
		if f, err := c.framer.ReadFrame(); err == nil && f.Header().Type == http2.FrameSettings {
			return
		}
	}
}

// listener fails in turn with each of its errors.
type listener struct {
	net.Listener
	errs []error
	made atomic.Int32
}

func (l *listener) Accept() (net.Conn, error) {
	i := int(l.made.Add(1)) - 1
	return nil, l.errs[min(i, len(l.errs)-1)]
}

func (l *listener) Close() error { return nil }

type passes struct{ error }

func (passes) Temporary() bool { return true }

func TestAcceptFails(t *testing.T) {
	broken := errors.New("broken")
	l := &listener{errs: []error{passes{errors.New("too many open files")}, broken}}
	if err := New(nil, Options{}).Serve(context.Background(), l); !errors.Is(err, broken) {
		t.Fatalf("%v", err)
	}
	if n := l.made.Load(); n != 2 {
		t.Fatalf("asked %d times", n)
	}
}
