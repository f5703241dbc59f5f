package demo

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"
)

// uncheckedHeader marks an answer to a request that Envoy let through by itself, as the sidecar had not answered.
const uncheckedHeader = "x-weir-demo-unchecked"

// upstream is the tiny service that Envoys protect.
type upstream struct {
	listener net.Listener
	server   *http.Server
}

func newUpstream() (*upstream, error) {
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("the demo's upstream: %w", err)
	}
	hello := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		if r.Header.Get("x-envoy-auth-failure-mode-allowed") == "true" {
			w.Header().Set(uncheckedHeader, "true")
		}
		fmt.Fprintln(w, "hello from the upstream")
	})
	return &upstream{l, &http.Server{Handler: hello, ReadHeaderTimeout: 5 * time.Second}}, nil
}

func (u *upstream) addr() *net.TCPAddr { return u.listener.Addr().(*net.TCPAddr) }

func (u *upstream) run(ctx context.Context) error {
	ended := make(chan error, 1)
	go func() { ended <- u.server.Serve(u.listener) }()
	stop := context.AfterFunc(ctx, func() { _ = u.server.Close() })
	defer stop()
	err := <-ended
	if ctx.Err() != nil {
		return nil
	}
	return err
}
