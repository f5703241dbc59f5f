package world

import (
	"io"
	"net"
	"net/http"

	"github.com/weirproxy/weir/test/parts"
)

// Answer is what came back through an Envoy.
type Answer struct {
	Status int
	Header http.Header
	Body   string
}

// Send sends one request through an Envoy. header is name, value, name, value …; a name may repeat,
// and a value may be any bytes that HTTP allows.
func (w *World) Send(e *parts.Envoy, method, path string, header ...string) Answer {
	w.T.Helper()
	return w.send(client, e, method, path, header)
}

// SendFrom is Send from another address of this machine. Envoy treats a peer of 127.0.0.1 alone
// apart: it appends its own address to X-Forwarded-For in place of the peer's.
func (w *World) SendFrom(local string, e *parts.Envoy, method, path string, header ...string) Answer {
	w.T.Helper()
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(local)}}
	transport := &http.Transport{DialContext: dialer.DialContext, DisableKeepAlives: true}
	return w.send(&http.Client{Transport: transport, Timeout: client.Timeout}, e, method, path, header)
}

func (w *World) send(c *http.Client, e *parts.Envoy, method, path string, header []string) Answer {
	w.T.Helper()
	req, err := http.NewRequest(method, e.URL()+path, nil)
	w.Must(err)
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Add(header[i], header[i+1])
	}
	resp, err := c.Do(req)
	w.Must(err)
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	w.Must(err)
	return Answer{resp.StatusCode, resp.Header, string(body)}
}

// Front starts one more Envoy before a pod's sidecar.
func (w *World) Front(p *Pod, opts parts.EnvoyOpts, authz parts.Authz) *parts.Envoy {
	w.T.Helper()
	authz.Address = "unix://" + p.Socket
	opts.Authz = &authz
	if opts.Upstream == "" {
		opts.Upstream = w.Upstream.Addr()
	}
	return parts.StartEnvoy(w.T, opts)
}

// Tool runs one of weir's programs to its end and returns its exit code and all that it wrote.
func (w *World) Tool(program string, args ...string) (code int, output string) {
	w.T.Helper()
	p := parts.Program(w.T, program, args...)
	_ = p.Wait(Patience) // the exit code says it
	return p.ExitCode(), p.Output()
}
