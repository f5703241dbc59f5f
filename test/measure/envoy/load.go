//go:build linux

package main

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"strconv"
	"syscall"
	"time"
)

// closed is a closed loop of HTTP/1.1 requests over n connections: each sends its next request when it has its answer. One
// thread serves all of them by epoll, since on two cores a costlier client would be what is measured.
type closed struct {
	epoll    int
	conns    map[int32]*httpConn
	requests [][]byte // sent in turn
	next     int
	buf      []byte
}

// httpConn is one connection: what of its answer is here, and since when it waits.
type httpConn struct {
	fd   int
	sent time.Time
	in   []byte
}

// sample is what a closed loop saw: the time of each answer, and answers by status.
type sample struct {
	times    []time.Duration
	statuses map[int]int
	took     time.Duration
}

func dial(addr string, n int, requests [][]byte) (*closed, error) {
	to, err := netip.ParseAddrPort(addr)
	if err != nil {
		return nil, fmt.Errorf("dial: %w", err)
	}
	epoll, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("epoll: %w", err)
	}
	c := &closed{epoll: epoll, conns: map[int32]*httpConn{}, requests: requests, buf: make([]byte, 64<<10)}
	for range n {
		if err := c.connect(to); err != nil {
			c.close()
			return nil, err
		}
	}
	return c, nil
}

func (c *closed) connect(to netip.AddrPort) error {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("socket: %w", err)
	}
	err = errors.Join(
		syscall.Connect(fd, &syscall.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().As4()}),
		syscall.SetsockoptInt(fd, syscall.IPPROTO_TCP, syscall.TCP_NODELAY, 1),
		syscall.SetNonblock(fd, true),
		syscall.EpollCtl(c.epoll, syscall.EPOLL_CTL_ADD, fd, &syscall.EpollEvent{Events: syscall.EPOLLIN, Fd: int32(fd)}), //nolint:gosec // a descriptor
	)
	if err != nil {
		_ = syscall.Close(fd)
		return fmt.Errorf("connect to %s: %w", to, err)
	}
	c.conns[int32(fd)] = &httpConn{fd: fd} //nolint:gosec // a descriptor
	return nil
}

func (c *closed) close() {
	for _, conn := range c.conns {
		_ = syscall.Close(conn.fd)
	}
	_ = syscall.Close(c.epoll)
}

// run sends for the length given, and waits for the answers under way.
func (c *closed) run(length time.Duration) (sample, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	s := sample{statuses: map[int]int{}}
	start := time.Now()
	until := start.Add(length)
	for _, conn := range c.conns {
		if err := c.send(conn); err != nil {
			return s, err
		}
	}
	events := make([]syscall.EpollEvent, len(c.conns))
	for waiting := len(c.conns); waiting > 0; {
		n, err := syscall.EpollWait(c.epoll, events, 10_000)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil {
			return s, fmt.Errorf("epoll: %w", err)
		}
		if n == 0 {
			return s, errNoAnswer
		}
		for i := range n {
			conn := c.conns[events[i].Fd]
			done, err := c.receive(conn, &s)
			if err != nil {
				return s, err
			}
			switch {
			case !done:
			case time.Now().Before(until):
				if err := c.send(conn); err != nil {
					return s, err
				}
			default:
				waiting--
			}
		}
	}
	s.took = time.Since(start)
	return s, nil
}

func (c *closed) send(conn *httpConn) error {
	request := c.requests[c.next%len(c.requests)]
	c.next++
	conn.sent = time.Now()
	n, err := syscall.Write(conn.fd, request)
	if err != nil || n < len(request) {
		return fmt.Errorf("send: %d of %d bytes: %w", n, len(request), err)
	}
	return nil
}

// receive reads what is there, and reports whether the answer is whole.
func (c *closed) receive(conn *httpConn, s *sample) (done bool, err error) {
	n, err := syscall.Read(conn.fd, c.buf)
	if errors.Is(err, syscall.EAGAIN) {
		return false, nil
	}
	if err != nil || n == 0 {
		return false, fmt.Errorf("the connection ended: %w", errors.Join(err, errEnded))
	}
	answer := c.buf[:n]
	if len(conn.in) > 0 {
		conn.in = append(conn.in, answer...)
		answer = conn.in
	}
	status, whole, err := parseAnswer(answer)
	if err != nil {
		return false, err
	}
	if !whole {
		if len(conn.in) == 0 {
			conn.in = append(conn.in, answer...)
		}
		return false, nil
	}
	conn.in = conn.in[:0]
	s.times = append(s.times, time.Since(conn.sent))
	s.statuses[status]++
	return true, nil
}

var (
	errNoAnswer  = errors.New("no answer within 10 s")
	errEnded     = errors.New("closed by the peer")
	errMalformed = errors.New("the answer is not what this client reads: HTTP/1.1 with a content-length")
)

// parseAnswer reads an answer's status, and whether all of it is there.
func parseAnswer(b []byte) (status int, whole bool, err error) {
	head := bytes.Index(b, []byte("\r\n\r\n"))
	if head < 0 {
		return 0, false, nil
	}
	if head < 12 || !bytes.HasPrefix(b, []byte("HTTP/1.1 ")) {
		return 0, false, errMalformed
	}
	status, err = strconv.Atoi(string(b[9:12]))
	const name = "\r\ncontent-length: "
	at := bytes.Index(bytes.ToLower(b[:head+2]), []byte(name))
	if err != nil || at < 0 {
		return 0, false, errMalformed
	}
	text := b[at+len(name):]
	length, err := strconv.Atoi(string(text[:bytes.IndexByte(text, '\r')]))
	if err != nil {
		return 0, false, errMalformed
	}
	return status, len(b) >= head+4+length, nil
}
