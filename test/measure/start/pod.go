package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/weirproxy/weir/test/parts"
	"github.com/weirproxy/weir/test/world"
)

// step is how often what is waited for is looked at.
const step = 500 * time.Microsecond

// nobody listens there.
const nobody = "127.0.0.1:1"

// moments of one start, since its execution.
type moments struct{ listening, connected, applied, decided, cpu time.Duration }

// pod is where the sidecars of one kind of start run, one after the other.
type pod struct {
	w             *world.World
	state, socket string
}

func newPod(w *world.World, s start) *pod {
	p := &pod{w: w, socket: parts.SocketPath(w.T), state: filepath.Join(w.Dir, strings.ReplaceAll(s.name, " ", "-"))}
	w.Must(os.MkdirAll(p.state, 0o750))
	return p
}

// forget drops the last good policies.
func (p *pod) forget() {
	p.w.Must(os.RemoveAll(p.state))
	p.w.Must(os.MkdirAll(p.state, 0o750))
}

// start runs the program until it has decided a check, and ends it.
func (p *pod) start(alone bool) moments {
	t, brokers := p.w.T, p.w.Kafka.Addr()
	if alone {
		brokers = nobody
	}
	cmd := parts.Command(t, "weir-sidecar", "run", "--listen", "unix://"+p.socket, "--identity-key-file", p.w.Key, "--kafka-brokers", brokers,
		"--pod-namespace", "shop", "--pod-name", "orders-0", "--target", world.Target, "--state-dir", p.state, "--admin-address", "tcp://127.0.0.1:0")
	began := time.Now()
	sidecar := parts.Start(t, "weir-sidecar", cmd)
	var m moments
	err := decided(p.socket)
	m.decided, m.cpu = time.Since(began), sidecar.CPU()
	if err == nil && !alone { // the topic is read, also where the file has answered before
		err = said(sidecar, "policies are in force")
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, sidecar.Output())
	}
	p.w.Must(sidecar.Terminate())
	if err := sidecar.Wait(world.Patience); err != nil {
		t.Fatalf("%v\n%s", err, sidecar.Output())
	}
	m.listening = when(sidecar, "checks are answered", began)
	m.connected = when(sidecar, "Kafka answers", began)
	m.applied = when(sidecar, "policies are in force", began)
	return m
}

// decided asks until a check is answered.
func decided(socket string) error {
	ctx, cancel := context.WithTimeout(context.Background(), world.Patience)
	defer cancel()
	conn, err := grpc.NewClient("passthrough:///sidecar", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return reach(ctx, socket) }))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	client := authv3.NewAuthorizationClient(conn)
	for {
		_, err := client.Check(ctx, check())
		if err == nil {
			return nil
		}
		if !wait(ctx) {
			return fmt.Errorf("no check is decided: %w", err)
		}
	}
}

// reach connects as soon as somebody listens.
func reach(ctx context.Context, socket string) (net.Conn, error) {
	var d net.Dialer
	for {
		conn, err := d.DialContext(ctx, "unix", socket)
		if err == nil || !wait(ctx) {
			return conn, err
		}
	}
}

func check() *authv3.CheckRequest {
	return &authv3.CheckRequest{Attributes: &authv3.AttributeContext{
		Source: &authv3.AttributeContext_Peer{Address: &corev3.Address{Address: &corev3.Address_SocketAddress{
			SocketAddress: &corev3.SocketAddress{Address: "10.0.0.1"},
		}}},
		Request: &authv3.AttributeContext_Request{Http: &authv3.AttributeContext_HttpRequest{
			Method: "GET", Path: "/orders/1", Headers: map[string]string{"x-api-key": "acme"},
		}},
	}}
}

// wait waits for one step; false: ctx has ended.
func wait(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(step):
		return true
	}
}

// said waits for a log line.
func said(p *parts.Process, msg string) error {
	for end := time.Now().Add(world.Patience); time.Now().Before(end); time.Sleep(step) {
		if strings.Contains(p.Output(), `"`+msg+`"`) {
			return nil
		}
	}
	return errors.New("it never said: " + msg)
}

// when the program said so first, since a moment; 0: never.
func when(p *parts.Process, msg string, since time.Time) time.Duration {
	for line := range strings.Lines(p.Output()) {
		var l struct {
			Time time.Time `json:"time"`
			Msg  string    `json:"msg"`
		}
		if json.Unmarshal([]byte(line), &l) == nil && l.Msg == msg {
			return l.Time.Sub(since)
		}
	}
	return 0
}
