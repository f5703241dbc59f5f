package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// egressConfig has kube-apiserver dial everything inside the cluster through a proxy: cluster addresses
// lead nowhere here.
const egressConfig = `apiVersion: apiserver.k8s.io/v1beta1
kind: EgressSelectorConfiguration
egressSelections:
- name: cluster
  connection: {proxyProtocol: HTTPConnect, transport: {uds: {udsName: %s}}}
`

// Route has what kube-apiserver sends to a Service, such as a webhook's, arrive at an address of this
// machine, host:port, whatever the port. The Service itself must exist and have a cluster address. An
// empty address takes the route away.
func (c *Cluster) Route(namespace, service, address string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.routes[namespace+"/"+service] = address
}

// startEgress serves the proxy until the test ends and returns kube-apiserver's file about it.
func (c *Cluster) startEgress(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "weir-egress-") // a test's own directory may be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, "s")
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(c.connect), ReadHeaderTimeout: 10 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		_ = server.Close()
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	file := filepath.Join(dir, "egress.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, egressConfig, socket), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// connect is HTTP CONNECT to the cluster address of a Service.
func (c *Cluster) connect(w http.ResponseWriter, r *http.Request) {
	address, err := c.resolve(r.Context(), r.Host)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	there, err := (&net.Dialer{Timeout: 5 * time.Second}).DialContext(r.Context(), "tcp", address)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer func() { _ = there.Close() }()
	here, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer func() { _ = here.Close() }()
	if _, err := io.WriteString(here, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	join(here, buffered, there)
}

// join copies both ways until both are over; the end of one ends the other.
func join(here net.Conn, from io.Reader, there net.Conn) {
	var done sync.WaitGroup
	done.Go(func() {
		_, _ = io.Copy(there, from)
		_ = there.Close()
	})
	_, _ = io.Copy(here, there)
	_ = here.Close()
	done.Wait()
}

// resolve finds where what is meant for a cluster address goes.
func (c *Cluster) resolve(ctx context.Context, address string) (string, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return "", err
	}
	c.mu.Lock()
	asked := c.Client
	c.mu.Unlock()
	if asked == nil {
		return "", errors.New("the cluster is still starting")
	}
	var services corev1.ServiceList
	if err := asked.List(ctx, &services); err != nil {
		return "", err
	}
	for i := range services.Items {
		s := &services.Items[i]
		if s.Spec.ClusterIP != host {
			continue
		}
		c.mu.Lock()
		to := c.routes[s.Namespace+"/"+s.Name]
		c.mu.Unlock()
		if to == "" {
			return "", fmt.Errorf("Service %s/%s leads nowhere", s.Namespace, s.Name)
		}
		return to, nil
	}
	return "", fmt.Errorf("%s is no Service's address", address)
}
