// Package admin is the programs' own HTTP server: liveness, readiness with reasons, metrics, and
// /debug for those on this machine. It serves people and probes, never a request that is limited.
//
//	/healthz   200 while the process runs
//	/readyz    200 or 503, with a JSON list of parts and their reasons
//	/metrics   Prometheus; on an address of its own if one is set
//	/debug/…   what the program believes, and pprof; loopback only
package admin

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"go.uber.org/zap"

	"github.com/weirproxy/weir/internal/listen"
	"github.com/weirproxy/weir/internal/log"
)

// MaxBody bounds a request's body, bytes.
const MaxBody = 1 << 20

// Config says where to listen. The zero value listens nowhere.
type Config struct {
	// Address as package listen reads it. Empty: no server.
	Address string
	// MetricsAddress, if set, serves /metrics alone, and Address then does not.
	MetricsAddress string
}

// Server collects what parts register and serves it. Register before Run; serving is safe for
// concurrent use.
type Server struct {
	config   Config
	log      *zap.Logger
	registry *prometheus.Registry
	ready    readiness
	debug    *http.ServeMux
}

// New makes a server with a metrics registry of its own, which holds Go's and the process's metrics.
func New(config Config, logger *zap.Logger) *Server {
	s := &Server{config: config, log: logger, registry: prometheus.NewRegistry(), debug: http.NewServeMux()}
	s.registry.MustRegister(collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	registerProfiles(s.debug)
	return s
}

// Registry is where parts register their metrics.
func (s *Server) Registry() *prometheus.Registry { return s.registry }

// Ready registers a part's readiness: whether it is ready and, in words for a person, why not or what
// is degraded although it is. check is called at each probe, from any goroutine, and must not wait.
func (s *Server) Ready(part string, check func() (ready bool, reasons []string)) {
	s.ready.add(part, check)
}

// HandleDebug registers a handler below /debug/, for example "GET /debug/policies". It is reached from
// this machine only; its request's body is bounded by MaxBody.
func (s *Server) HandleDebug(pattern string, h http.Handler) { s.debug.Handle(pattern, h) }

// Handler is everything that Address serves.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", s.ready.serve)
	mux.Handle("/debug/", loopbackOnly(s.debug))
	if s.config.MetricsAddress == "" {
		mux.Handle("GET /metrics", s.metrics())
	}
	return bounded(mux)
}

// Run serves until ctx ends, then finishes what is in flight within a second. It returns an error
// where an address cannot be listened on.
func (s *Server) Run(ctx context.Context) error {
	addresses := []struct {
		address string
		handler http.Handler
	}{{s.config.Address, s.Handler()}, {s.config.MetricsAddress, bounded(s.metricsOnly())}}
	var servers []*http.Server
	failed := make(chan error, len(addresses))
	defer func() { s.end(servers) }()
	for _, a := range addresses {
		if a.address == "" {
			continue
		}
		l, err := listen.Listen(a.address, 0)
		if err != nil {
			return err
		}
		s.log.Info("admin listens", zap.String(log.Address, l.Addr().String()))
		srv := s.server(a.handler)
		servers = append(servers, srv)
		go func() { failed <- srv.Serve(l) }()
	}
	select {
	case <-ctx.Done():
		return nil
	case err := <-failed:
		return fmt.Errorf("admin server: %w", err)
	}
}

// server has a bound for everything a client can draw out.
func (s *Server) server(h http.Handler) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      2 * time.Minute, // a CPU profile takes its time
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          zap.NewStdLog(s.log),
	}
}

func (s *Server) end(servers []*http.Server) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	for _, srv := range servers {
		if err := srv.Shutdown(ctx); errors.Is(err, context.DeadlineExceeded) {
			_ = srv.Close()
		}
	}
}

// bounded keeps a request's body from growing without end.
func bounded(next http.Handler) http.Handler {
	return http.MaxBytesHandler(next, MaxBody)
}

// loopbackOnly refuses whoever is not on this machine, and browsers that a foreign page has sent here
// under its own name.
func loopbackOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !fromHere(r.RemoteAddr) || !namesHere(r.Host) {
			http.Error(w, "/debug is served on loopback only: ask from the same machine or pod, for example by kubectl port-forward",
				http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func fromHere(remote string) bool {
	host, _, err := net.SplitHostPort(remote)
	if err != nil {
		return remote == "" || remote == "@" // a unix socket
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

func namesHere(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
