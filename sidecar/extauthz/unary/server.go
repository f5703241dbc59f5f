package unary

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Server answers unary gRPC calls. It is used for one Serve.
type Server struct {
	methods  Methods
	options  Options
	blocks   blocks
	draining atomic.Bool

	mu    sync.Mutex
	conns map[net.Conn]struct{}
	over  bool // no further connection is served
	done  sync.WaitGroup
}

// New returns a server of methods, which it keeps and does not change.
func New(methods Methods, options Options) *Server {
	return &Server{
		methods: methods,
		options: options.withDefaults(),
		blocks:  newBlocks(),
		conns:   make(map[net.Conn]struct{}),
	}
}

// Serve answers calls on l, once, until ctx ends; then it accepts no connection, tells those there are to
// go away, lets calls under way finish within the drain time, and returns nil. It closes l, and leaves no
// goroutine behind. The error is the listener's.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	accepted := make(chan error, 1)
	go func() { accepted <- s.accept(ctx, l) }()
	var err error
	select {
	case err = <-accepted:
		_ = l.Close()
	case <-ctx.Done():
		_ = l.Close()
		err = <-accepted // of no interest: l was closed
	}
	if ctx.Err() == nil {
		s.drain(0)
		return fmt.Errorf("accept connections: %w", err)
	}
	s.drain(s.options.Drain)
	return nil
}

// accept serves connections until l fails. Where the machine is short of something it tries again.
func (s *Server) accept(ctx context.Context, l net.Listener) error {
	var wait time.Duration
	for {
		nc, err := l.Accept()
		if err == nil {
			wait = 0
			s.start(nc)
			continue
		}
		if errors.Is(err, net.ErrClosed) || ctx.Err() != nil || !passing(err) {
			return err
		}
		wait = min(max(2*wait, 5*time.Millisecond), time.Second)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait):
		}
	}
}

// passing reports whether an error of Accept is one that the next call may not have: too many open
// files, a connection that is gone already.
func passing(err error) bool {
	var temporary interface{ Temporary() bool }
	return errors.As(err, &temporary) && temporary.Temporary()
}

func (s *Server) start(nc net.Conn) {
	if !s.add(nc) {
		_ = nc.Close()
		return
	}
	go func() {
		defer s.remove(nc)
		newConn(s, nc).serve()
	}()
}

func (s *Server) add(nc net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over || len(s.conns) >= s.options.MaxConnections {
		return false
	}
	s.conns[nc] = struct{}{}
	s.done.Add(1)
	return true
}

func (s *Server) remove(nc net.Conn) {
	_ = nc.Close()
	s.mu.Lock()
	delete(s.conns, nc)
	s.mu.Unlock()
	s.done.Done()
}

// drain ends all connections: by GOAWAY at first, by closing them after the grace.
func (s *Server) drain(grace time.Duration) {
	s.draining.Store(true)
	s.each(func(nc net.Conn) { _ = nc.SetReadDeadline(time.Unix(1, 0)) }) // wakes its goroutine
	timer := time.AfterFunc(grace, func() { s.each(func(nc net.Conn) { _ = nc.Close() }) })
	defer timer.Stop()
	s.done.Wait()
}

func (s *Server) each(f func(net.Conn)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	for nc := range s.conns {
		f(nc)
	}
}
