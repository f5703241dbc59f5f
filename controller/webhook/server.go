package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
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
	srv := s.http()
	ended := make(chan error, 1)
	go func() { ended <- srv.ServeTLS(l, "", "") }()
	select {
	case err := <-ended:
		return fmt.Errorf("webhook server: %w", err)
	case <-ctx.Done():
	}
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

// http has a bound for everything a client can draw out.
func (s server) http() *http.Server {
	mux := http.NewServeMux()
	mux.Handle(Path, s.handler)
	return &http.Server{
		Handler:           mux,
		TLSConfig:         &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: s.certificate},
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      20 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          zap.NewStdLog(s.log),
	}
}
