package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/weirproxy/weir/internal/listen"
)

// Client asks a program's admin server. It is safe for concurrent use.
type Client struct {
	addr string
	http *http.Client
}

// NewClient takes the address as the server's configuration has it, or a bare host:port.
func NewClient(addr string) (*Client, error) {
	full := addr
	if !strings.Contains(full, "://") {
		full = "tcp://" + full
	}
	full = strings.Replace(full, "http://", "tcp://", 1)
	a, err := listen.Parse(strings.TrimSuffix(full, "/"))
	if err != nil {
		return nil, err
	}
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, a.Network, a.Path)
	}
	transport := &http.Transport{DialContext: dial, DisableKeepAlives: true}
	return &Client{addr: addr, http: &http.Client{Transport: transport, Timeout: 5 * time.Second}}, nil
}

// Get asks for path and returns the status and the body, at most MaxBody of it.
func (c *Client) Get(ctx context.Context, path string) (status int, body []byte, err error) {
	return c.do(ctx, http.MethodGet, path, nil)
}

// Post sends in as JSON and reads the answer into out; a status other than 200 is an error that holds
// what the server said.
func (c *Client) Post(ctx context.Context, path string, in, out any) error {
	b, err := json.Marshal(in)
	if err != nil {
		return fmt.Errorf("encode the request: %w", err)
	}
	status, body, err := c.do(ctx, http.MethodPost, path, bytes.NewReader(b))
	if err != nil {
		return err
	}
	if status != http.StatusOK {
		return fmt.Errorf("%s%s answered %d: %s", c.addr, path, status, strings.TrimSpace(string(body)))
	}
	if err := json.Unmarshal(body, out); err != nil {
		return fmt.Errorf("%s%s: the answer is not the JSON expected (is it another program, or another version of it?): %w", c.addr, path, err)
	}
	return nil
}

func (c *Client) do(ctx context.Context, method, path string, body io.Reader) (int, []byte, error) {
	// The host is one that /debug takes, wherever the connection goes.
	r, err := http.NewRequestWithContext(ctx, method, "http://localhost"+path, body)
	if err != nil {
		return 0, nil, err
	}
	res, err := c.http.Do(r)
	if err != nil {
		return 0, nil, fmt.Errorf("ask %s: %w; is the program running, and is this its admin address?", c.addr, err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(io.LimitReader(res.Body, MaxBody))
	if err != nil {
		return 0, nil, fmt.Errorf("read the answer of %s: %w", c.addr, err)
	}
	return res.StatusCode, b, nil
}
