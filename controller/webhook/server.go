package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	stdlog "log"
	"net/http"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/weirproxy/weir/internal/listen"
	"github.com/weirproxy/weir/internal/log"
)

// Path is where the configuration of the webhook sends reviews.
const Path = "/inject"

// server serves reviews over TLS.
type server struct {
	address     string
	certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	handler     http.Handler
	drained     func() <-chan time.Time // asked once reviews may cease
	log         *zap.Logger
}

// Run serves until ctx ends, and then for the drain period more: kube-apiserver learns a little later that this
// replica ends, and a pod whose review finds nobody is created without a sidecar.
func (s server) Run(ctx context.Context) error {
	l, err := listen.Listen(s.address, 0)
	if err != nil {
		return err
	}
	s.log.Info("webhook listens", zap.String(log.Address, l.Addr().String()))
	ending := &atomic.Bool{}
	srv := s.http(ending)
	ended := make(chan error, 1)
	go func() { ended <- srv.ServeTLS(l, "", "") }()
	select {
	case err := <-ended:
		return fmt.Errorf("webhook server: %w", err)
	case <-ctx.Done():
	}
	ending.Store(true)
	select {
	case <-s.drained():
	case err := <-ended:
		return fmt.Errorf("webhook server: %w", err)
	}
	end, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := srv.Shutdown(end); errors.Is(err, context.DeadlineExceeded) {
		_ = srv.Close()
	}
	return nil
}

// http has a bound for everything a client can draw out. HTTP/1 alone: over HTTP/2 one connection may carry any number
// of slow requests, and kube-apiserver would send all to one replica. Once ending, each answer closes its connection,
// so that the caller goes to another replica; idle ones stay open meanwhile, since a review that meets its connection's
// end would find nobody.
func (s server) http(ending *atomic.Bool) *http.Server {
	mux := http.NewServeMux()
	mux.HandleFunc(Path, func(w http.ResponseWriter, r *http.Request) {
		if ending.Load() {
			w.Header().Set("Connection", "close")
		}
		s.handler.ServeHTTP(w, r)
	})
	protocols := &http.Protocols{}
	protocols.SetHTTP1(true)
	connections := newConnections(maxConnections)
	return &http.Server{
		Handler:           mux,
		Protocols:         protocols,
		ConnState:         connections.changed,
		TLSConfig:         &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: s.certificate},
		ReadHeaderTimeout: 2 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      20 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          debugLog(s.log), // failed handshakes: anybody's
	}
}

func debugLog(logger *zap.Logger) *stdlog.Logger {
	out, err := zap.NewStdLogAt(logger, zap.DebugLevel)
	if err != nil { // no such level
		return zap.NewStdLog(logger)
	}
	return out
}
