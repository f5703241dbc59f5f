package parts

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strconv"
	"time"
)

// Toxiproxy is a TCP proxy that delays, slows and cuts what passes through it.
// It is a process of its own, so that it takes no time from a test's load.
type Toxiproxy struct{ *Server }

// StartToxiproxy starts one without proxies and returns when it answers.
func StartToxiproxy(t T) *Toxiproxy {
	t.Helper()
	binary := tool(t, "toxiproxy", "bin", "toxiproxy-server")
	return &Toxiproxy{startServer(t, plan{
		name:  "toxiproxy",
		ports: 1,
		command: func(ports []int) (*exec.Cmd, error) {
			return exec.Command(binary, "-host", "127.0.0.1", "-port", strconv.Itoa(ports[0])), nil
		},
		ready: func(ports []int) error { return toxiproxyAsk(loopback(ports[0]), http.MethodGet, "/version", nil) },
	})}
}

// Proxy is an address to connect to in place of a server's own. Its methods
// must be called on the test's goroutine: one that does not work fails the test.
type Proxy struct {
	via        *Toxiproxy
	name, addr string
}

// Proxy adds a proxy. It leads nowhere before To is called.
func (x *Toxiproxy) Proxy(name string) *Proxy {
	x.t.Helper()
	p := &Proxy{via: x, name: name}
	var err error
	for range startAttempts {
		var port int
		if port, err = FreePort(); err != nil {
			break
		}
		p.addr = loopback(port)
		// Port 1 is nobody's: connections are closed.
		settings := map[string]any{"name": name, "listen": p.addr, "upstream": loopback(1)}
		if err = toxiproxyAsk(x.Addr(), http.MethodPost, "/proxies", settings); err == nil {
			return p
		}
	}
	x.t.Fatalf("proxy %s: %v", name, err)
	return nil
}

// Addr returns the host:port to connect to.
func (p *Proxy) Addr() string { return p.addr }

// To names the server that connections lead to, host:port. Those there are end.
func (p *Proxy) To(server string) {
	p.via.t.Helper()
	p.ask(http.MethodPost, "", map[string]any{"upstream": server})
}

// Toxic is what is done to the bytes of every connection, those there are and
// those to come. The directions are treated alike, each by itself.
type Toxic struct {
	kind  string
	name  string // of its one setting
	value int64
}

// Latency delays each way: a round trip takes 2d more.
func Latency(d time.Duration) Toxic { return Toxic{"latency", "latency", d.Milliseconds()} }

// Bandwidth lets so many kB/s pass on each connection.
func Bandwidth(kilobytes int64) Toxic { return Toxic{"bandwidth", "rate", kilobytes} }

// Silence drops everything: connections are made, stay open, and nothing comes.
// They are closed when the silence ends.
func Silence() Toxic { return Toxic{"timeout", "timeout", 0} }

var directions = []string{"upstream", "downstream"}

// Add begins a fault. There may be one of each kind.
func (p *Proxy) Add(x Toxic) {
	p.via.t.Helper()
	for _, d := range directions {
		p.ask(http.MethodPost, "/toxics", map[string]any{
			"name": x.kind + "_" + d, "type": x.kind, "stream": d, "attributes": map[string]int64{x.name: x.value},
		})
	}
}

// Remove ends a fault that Add began.
func (p *Proxy) Remove(x Toxic) {
	p.via.t.Helper()
	for _, d := range directions {
		p.ask(http.MethodDelete, "/toxics/"+x.kind+"_"+d, nil)
	}
}

// Down cuts all connections, and refuses new ones until Up.
func (p *Proxy) Down() {
	p.via.t.Helper()
	p.ask(http.MethodPost, "", map[string]any{"enabled": false})
}

// Up takes connections again.
func (p *Proxy) Up() {
	p.via.t.Helper()
	p.ask(http.MethodPost, "", map[string]any{"enabled": true})
}

// Cut cuts all connections; new ones are taken at once.
func (p *Proxy) Cut() {
	p.via.t.Helper()
	p.Down()
	p.Up()
}

func (p *Proxy) ask(method, path string, body any) {
	p.via.t.Helper()
	if err := toxiproxyAsk(p.via.Addr(), method, "/proxies/"+p.name+path, body); err != nil {
		p.via.t.Fatalf("proxy %s: %v", p.name, err)
	}
}

// toxiproxyAsk makes one call of toxiproxy's interface; any status but 2xx is an
// error. Removing a fault waits for what was held back.
func toxiproxyAsk(addr, method, path string, body any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	request, err := http.NewRequest(method, "http://"+addr+path, bytes.NewReader(text))
	if err != nil {
		return err
	}
	client := &http.Client{Timeout: 30 * time.Second}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode/100 != 2 {
		err = fmt.Errorf("%s: %s", response.Status, answer)
	}
	return err
}
