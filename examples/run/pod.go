package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/weirproxy/weir/internal/admin"
	"github.com/weirproxy/weir/internal/explain"
)

// pod is a service with its sidecar and its Envoy, as a pod holds them.
type pod struct {
	name       string
	dir        string
	url        string // of its Envoy
	envoyAdmin string // host:port
	sidecar    *admin.Client
}

// pod starts the n-th one; it may not be ready yet.
func (i *installation) pod(ctx context.Context, n int, s service) error {
	p, err := i.place(n, s.name)
	if err != nil {
		return err
	}
	i.pods = append(i.pods, p)
	service, err := freePort()
	if err != nil {
		return err
	}
	i.sayf("\n")
	if err := i.launch(s.name, []string{"PORT=" + strconv.Itoa(service)}, s.command...); err != nil {
		return err
	}
	if err := until(ctx, i.processes, s.name, func(ctx context.Context) error { return dial(ctx, service) }); err != nil {
		return err
	}
	namespace, _, _ := strings.Cut(i.target, "/")
	if err := i.launch("sidecar-"+s.name, nil, i.program("weir-sidecar"), "run", "--kafka-brokers", i.kafka.Addr(), "--identity-key-file", i.key,
		"--pod-namespace", namespace, "--pod-name", s.name, "--target", i.target,
		"--listen", "unix://"+p.socket(), "--admin-address", p.adminAddress()); err != nil {
		return err
	}
	return i.front(ctx, p, service)
}

// front renders an Envoy for the pod and starts it.
func (i *installation) front(ctx context.Context, p *pod, service int) error {
	text, err := i.output(ctx, i.program("weir"), "render", "envoy", "--target", i.target, "--policies", i.policyDir(),
		"--check", "unix://"+p.socket(), "--service", loopback(service), "--listener", strings.TrimPrefix(p.url, "http://"), "--admin", p.envoyAdmin)
	if err != nil {
		return err
	}
	file := filepath.Join(p.dir, "envoy.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return err
	}
	return i.launch("envoy-"+p.name, nil, i.envoy, "--config-path", file, "--concurrency", "1", "--log-level", "warning", "--disable-hot-restart")
}

// place chooses a pod's directory and ports.
func (i *installation) place(n int, name string) (*pod, error) {
	p := &pod{name: name, dir: filepath.Join(i.dir, name)}
	port, err := i.envoyPort(n)
	if err != nil {
		return nil, err
	}
	envoyAdmin, err := freePort()
	if err != nil {
		return nil, err
	}
	p.url, p.envoyAdmin = "http://"+loopback(port), loopback(envoyAdmin)
	if p.sidecar, err = admin.NewClient(p.adminAddress()); err != nil {
		return nil, err
	}
	return p, os.Mkdir(p.dir, 0o700)
}

func (i *installation) envoyPort(n int) (int, error) {
	if i.port == 0 {
		return freePort()
	}
	return i.port + n, nil
}

func (p *pod) socket() string       { return filepath.Join(p.dir, "check.sock") }
func (p *pod) adminAddress() string { return "unix://" + filepath.Join(p.dir, "admin.sock") }

var errNotYet = errors.New("not ready yet")

// ready is nil once the policies are in force on the sidecar, its decisions arrive, and Envoy serves.
func (p *pod) ready(ctx context.Context) error {
	status, _, err := p.sidecar.Get(ctx, "/readyz")
	if err == nil && status != http.StatusOK {
		err = errNotYet
	}
	if err != nil {
		return err
	}
	var answer explain.Response
	if err := p.sidecar.Post(ctx, explain.Path, explain.Request{Method: "GET", Path: "/", RemoteAddress: "127.0.0.1"}, &answer); err != nil {
		return err
	}
	if len(answer.Counters) == 0 || len(answer.Degraded) > 0 {
		return fmt.Errorf("no limit in force (%s, degraded: %s)", answer.Outcome, strings.Join(answer.Degraded, ", "))
	}
	status, _, _, err = get(ctx, "http://"+p.envoyAdmin+"/ready", "")
	if err == nil && status != http.StatusOK {
		err = errNotYet
	}
	return err
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// freePort is one that nobody listens on at this moment.
func freePort() (int, error) {
	l, err := net.Listen("tcp", loopback(0))
	if err != nil {
		return 0, err
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}

func dial(ctx context.Context, port int) error {
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", loopback(port))
	if err != nil {
		return err
	}
	return c.Close()
}
