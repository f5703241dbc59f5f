package parts

import (
	"errors"
	"fmt"
	"os/exec"
	"sync"
	"time"
)

const (
	// readyWithin bounds the wait for a server's first answer. A broker takes
	// 2 to 4 s on an idle machine, and much longer on a busy one.
	readyWithin = 90 * time.Second
	// startAttempts is how often a server is started on new ports, since a
	// port that was free may be taken before the server listens on it.
	startAttempts = 4
)

// plan says how one kind of server is started. Its functions get the ports
// that the server owns, ports of them, in the same order each time.
type plan struct {
	name  string
	ports int
	// command makes what to run, with its files. It is called again for each
	// start, and must keep data of earlier starts on the same ports.
	command func(ports []int) (*exec.Cmd, error)
	// ready asks the server something that only a working one answers.
	ready func(ports []int) error
}

// Server is a real server on loopback that can be stopped, killed, frozen and
// started again on the same ports and data. Only the methods that say so must
// be called on the test's goroutine; all are safe for concurrent use.
type Server struct {
	t    T
	plan plan

	mu sync.Mutex
	// runs are all processes this server has been, the newest last.
	runs  []*Process
	ports []int
}

// startServer starts what the plan says and returns when it answers. All that
// it started is ended when the test ends.
func startServer(t T, p plan) *Server {
	t.Helper()
	s := &Server{t: t, plan: p}
	t.Cleanup(s.cleanUp)
	var err error
	for range startAttempts {
		if s.ports, err = freePorts(p.ports); err != nil {
			break
		}
		if err = s.launch(); !errors.Is(err, errEnded) {
			break
		}
		t.Logf("%s ended while starting on ports %v", p.name, s.ports)
	}
	if err != nil {
		t.Fatalf("start %s: %v", p.name, err)
	}
	return s
}

// launch starts a process on s.ports and waits until it answers. The error is
// errEnded if the process ended instead.
func (s *Server) launch() error {
	cmd, err := s.plan.command(s.ports)
	if err != nil {
		return err
	}
	p, err := start(s.plan.name, cmd)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.runs = append(s.runs, p)
	s.mu.Unlock()
	err = poll(readyWithin, p.Done(), func() error { return s.plan.ready(s.ports) })
	if err != nil {
		p.Kill()
		return fmt.Errorf("%w: %s", err, p.out.tail(10))
	}
	return nil
}

func (s *Server) cleanUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.runs {
		p.cleanUp(s.t)
	}
}

// Process returns the newest process of this server; it may have ended.
func (s *Server) Process() *Process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.runs[len(s.runs)-1]
}

// Addr returns the host:port that clients use. It stays the same over restarts.
func (s *Server) Addr() string { return loopback(s.ports[0]) }

// PID returns the id of the newest process.
func (s *Server) PID() int { return s.Process().PID() }

// CPU returns the CPU time of the newest process, in steps of 10 ms. A restart
// begins at 0.
func (s *Server) CPU() time.Duration { return s.Process().CPU() }

// RSS returns the resident memory of the newest process in bytes.
func (s *Server) RSS() int64 { return s.Process().RSS() }

// Kill ends the server by SIGKILL.
func (s *Server) Kill() { s.Process().Kill() }

// Stop ends the server in an orderly way, and fails the test if that does not
// work. Call it on the test's goroutine.
func (s *Server) Stop() {
	s.t.Helper()
	if err := s.Process().Stop(); err != nil {
		s.t.Fatalf("stop: %v", err)
	}
}

// Start starts a server that has been stopped or killed, on the same ports and
// data, and returns when it answers. Call it on the test's goroutine.
func (s *Server) Start() {
	s.t.Helper()
	if !s.Process().hasEnded() {
		s.t.Fatalf("start %s: it is running", s.plan.name)
	}
	if err := s.launch(); err != nil {
		s.t.Fatalf("start %s again: %v", s.plan.name, err)
	}
}

// Restart kills the server and starts it again on the same ports and data.
// Call it on the test's goroutine.
func (s *Server) Restart() {
	s.t.Helper()
	s.Kill()
	s.Start()
}

// Pause freezes the server (SIGSTOP): connections stay open and nothing
// answers. Call it on the test's goroutine.
func (s *Server) Pause() {
	s.t.Helper()
	if err := s.Process().Pause(); err != nil {
		s.t.Fatalf("pause %s: %v", s.plan.name, err)
	}
}

// Resume lets a frozen server go on. Call it on the test's goroutine.
func (s *Server) Resume() {
	s.t.Helper()
	if err := s.Process().Resume(); err != nil {
		s.t.Fatalf("resume %s: %v", s.plan.name, err)
	}
}
