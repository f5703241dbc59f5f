package parts

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// Upstream is the service behind Envoy: it answers every request 200 "ok" and
// counts. It runs within this process. It is safe for concurrent use.
type Upstream struct {
	listener net.Listener
	count    atomic.Int64
}

// StartUpstream starts one on a free port; it is stopped when the test ends.
func StartUpstream(t T) *Upstream {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", loopback(0))
	if err != nil {
		t.Fatalf("start upstream: %v", err)
	}
	u := &Upstream{listener: listener}
	server := &http.Server{Handler: u, ReadHeaderTimeout: 10 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		_ = server.Close()
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Logf("upstream: %v", err)
		}
	})
	return u
}

// ServeHTTP counts and answers one request.
func (u *Upstream) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	u.count.Add(1)
	w.Header().Set("content-type", "text/plain")
	_, _ = w.Write([]byte("ok\n")) // the client may have gone
}

// Addr returns the host:port that it listens on.
func (u *Upstream) Addr() string { return u.listener.Addr().String() }

// Count returns how many requests have arrived.
func (u *Upstream) Count() int64 { return u.count.Load() }
