package unary

import (
	"bytes"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"
)

// pipe returns the two ends of a connection. Both end by themselves if something hangs.
func pipe(t *testing.T) (near, far *net.UnixConn) {
	t.Helper()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	ends := make([]*net.UnixConn, 2)
	for i, fd := range fds {
		file := os.NewFile(uintptr(fd), "pipe")
		nc, err := net.FileConn(file)
		_ = file.Close()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = nc.Close() })
		_ = nc.SetDeadline(time.Now().Add(patience))
		ends[i] = nc.(*net.UnixConn)
	}
	return ends[0], ends[1]
}

// readAll reads until the other side ends.
func readAll(t *testing.T, nc net.Conn) {
	if _, err := io.Copy(io.Discard, nc); err != nil {
		if nerr, ok := err.(net.Error); ok && nerr.Timeout() { //nolint:errorlint // as it comes
			t.Error("the server waits")
		}
	}
}

// script is a connection that reads what it is given, over and over, and takes all that is written.
type script struct {
	net.Conn
	bytes.Reader
	written int
	armed   int // how often a read deadline was set
}

func (s *script) Read(p []byte) (int, error)       { return s.Reader.Read(p) }
func (s *script) Write(p []byte) (int, error)      { s.written += len(p); return len(p), nil }
func (s *script) SetReadDeadline(time.Time) error  { s.armed++; return nil }
func (s *script) SetWriteDeadline(time.Time) error { return nil }
func (s *script) Close() error                     { return nil }

// answerTwoFrames handles a call's HEADERS and DATA, and writes the answer.
func (c *conn) answerTwoFrames(t testing.TB) {
	for range 2 {
		if err := c.next(); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.wire.flush(); err != nil {
		t.Fatal(err)
	}
}
