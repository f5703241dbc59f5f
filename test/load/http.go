package load

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// httpTarget speaks HTTP/1.1 itself, since net/http's client repeats a request
// whose kept connection turned out to be broken, which would falsify the
// account. It also costs a quarter less CPU.
type httpTarget struct {
	addr string
	// slots holds each connection that is not in use, nil for one to be made.
	slots  chan *httpConn
	closed sync.Once
}

type httpConn struct {
	net.Conn
	reader *bufio.Reader
	buf    []byte
}

// HTTP returns a target that sends to the Envoy at addr over at most n
// connections, which are made when first needed and kept alive. A connection
// that Envoy has closed costs the next request on it, as an error.
func HTTP(addr string, n int) Target {
	t := &httpTarget{addr: addr, slots: make(chan *httpConn, n)}
	for range n {
		t.slots <- nil
	}
	return t
}

func (t *httpTarget) Do(ctx context.Context, r *Request) (Answer, error) {
	conn, err := t.take(ctx)
	if err != nil {
		return Answer{}, err
	}
	answer, reusable, err := conn.do(ctx, r)
	if !reusable {
		_ = conn.Close()
		conn = nil
	}
	t.slots <- conn
	return answer, err
}

// take returns a connection, which must go back to t.slots.
func (t *httpTarget) take(ctx context.Context) (*httpConn, error) {
	select {
	case conn := <-t.slots:
		if conn != nil {
			return conn, nil
		}
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	raw, err := (&net.Dialer{}).DialContext(ctx, "tcp", t.addr)
	if err != nil {
		t.slots <- nil
		return nil, err
	}
	return &httpConn{Conn: raw, reader: bufio.NewReader(raw)}, nil
}

// Close closes the connections once their requests are answered.
func (t *httpTarget) Close() error {
	t.closed.Do(func() {
		for range cap(t.slots) {
			if conn := <-t.slots; conn != nil {
				_ = conn.Close()
			}
		}
		for range cap(t.slots) {
			t.slots <- nil
		}
	})
	return nil
}

// do writes r and reads its answer. reusable says that the connection is at
// the beginning of a next request.
func (c *httpConn) do(ctx context.Context, r *Request) (answer Answer, reusable bool, err error) {
	deadline, _ := ctx.Deadline() // the zero time is none
	if err := c.SetDeadline(deadline); err != nil {
		return Answer{}, false, err
	}
	c.buf = appendRequest(c.buf[:0], r)
	if _, err := c.Write(c.buf); err != nil {
		return Answer{}, false, err
	}
	response, err := http.ReadResponse(c.reader, &http.Request{Method: r.method()})
	if err != nil {
		return Answer{}, false, err
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return Answer{}, false, err
	}
	return Answer{Status: response.StatusCode, Header: response.Header}, !response.Close, nil
}

func appendRequest(b []byte, r *Request) []byte {
	b = append(b, r.method()...)
	b = append(b, ' ')
	b = append(b, r.path()...)
	b = append(b, " HTTP/1.1\r\nhost: "...)
	b = append(b, r.host()...)
	for name, value := range r.Header {
		b = append(b, "\r\n"...)
		b = append(b, name...)
		b = append(b, ": "...)
		b = append(b, value...)
	}
	if r.method() != http.MethodGet && r.method() != http.MethodHead {
		b = append(b, "\r\ncontent-length: 0"...)
	}
	return append(b, "\r\n\r\n"...)
}

// defaultTimeout is how long a request may take, if nothing else is said.
const defaultTimeout = 5 * time.Second
