package parts

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	// stopWithin is how long Stop waits for a process to end by itself. A
	// broker's orderly end is the longest of them.
	stopWithin = 30 * time.Second
	// logLines is how much of a process's output a failed test shows.
	logLines = 200
	// exitTerminated is the exit code of a Java program that ended in order
	// because of SIGTERM.
	exitTerminated = 128 + int(syscall.SIGTERM)
)

// Process is one running program. It is safe for concurrent use.
type Process struct {
	name string
	cmd  *exec.Cmd
	out  *output
	// asked: somebody wanted it to end, so its end is no news.
	asked atomic.Bool
	// ended is closed once the process has been reaped; cmd.ProcessState may
	// be read from then on.
	ended chan struct{}
}

// Start starts cmd and returns at once. The process is ended by SIGKILL when
// the test ends, its output is logged if the test failed or it had ended
// unasked. cmd's Stdout, Stderr and SysProcAttr are set here.
func Start(t T, name string, cmd *exec.Cmd) *Process {
	t.Helper()
	p, err := start(name, cmd)
	if err != nil {
		t.Fatalf("%v", err)
	}
	t.Cleanup(func() { p.cleanUp(t) })
	return p
}

// start is Start without a test. The caller must see to it that Kill is called.
func start(name string, cmd *exec.Cmd) (*Process, error) {
	p := &Process{name: name, cmd: cmd, out: &output{}, ended: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = p.out, p.out
	// A grandchild that inherited the pipes must not keep Wait from returning.
	cmd.WaitDelay = time.Second
	if err := spawn(cmd); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() {
		defer close(p.ended)
		_ = cmd.Wait() // the state says how it ended
	}()
	return p, nil
}

func (p *Process) cleanUp(t T) {
	unasked := p.hasEnded() && !p.asked.Load()
	p.Kill()
	if unasked {
		t.Logf("%s (pid %d) ended by itself: %v", p.name, p.PID(), p.cmd.ProcessState)
	}
	if t.Failed() || unasked {
		t.Logf("output of %s (pid %d), last %d lines:\n%s", p.name, p.PID(), logLines, p.out.tail(logLines))
	}
}

// PID returns the process id. It is the kernel's to give again once the
// process has ended.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Output returns the last MiB or so of what the process wrote.
func (p *Process) Output() string { return p.out.String() }

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.ended }

func (p *Process) hasEnded() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// Signal sends sig. A process that has ended already is no error.
func (p *Process) Signal(sig os.Signal) error {
	err := p.cmd.Process.Signal(sig)
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

// Terminate asks the process to end (SIGTERM) and does not wait.
func (p *Process) Terminate() error {
	p.asked.Store(true)
	return p.Signal(syscall.SIGTERM)
}

// Pause freezes the process (SIGSTOP); its connections stay open.
func (p *Process) Pause() error { return p.Signal(syscall.SIGSTOP) }

// Resume lets a frozen process go on.
func (p *Process) Resume() error { return p.Signal(syscall.SIGCONT) }

// Kill ends the process by SIGKILL and returns once it has been reaped.
func (p *Process) Kill() {
	p.asked.Store(true)
	_ = p.Signal(syscall.SIGKILL) // fails only for a process that has ended
	<-p.ended
}

// Stop ends the process by SIGTERM and waits. One that has not ended after
// half a minute is killed, which is an error, as is an exit code other than 0.
// A process that SIGTERM itself ended (no handler, or 143) has ended well.
func (p *Process) Stop() error {
	if err := p.Terminate(); err != nil {
		return err
	}
	_ = p.Resume() // a frozen process would not see SIGTERM
	return p.Wait(stopWithin)
}

// Wait waits for the process to end and returns an error if it ended badly: an
// exit code but 0 and 143, or a signal other than SIGTERM. If it has not ended
// within the given time it is killed, and that is an error too.
func (p *Process) Wait(within time.Duration) error {
	p.asked.Store(true)
	select {
	case <-p.ended:
		return p.verdict()
	case <-time.After(within):
		p.Kill()
		return fmt.Errorf("%s (pid %d) did not end within %v and was killed", p.name, p.PID(), within)
	}
}

func (p *Process) verdict() error {
	state := p.cmd.ProcessState
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() && status.Signal() == syscall.SIGTERM {
		return nil
	}
	if code := state.ExitCode(); code != 0 && code != exitTerminated {
		return fmt.Errorf("%s (pid %d): %v: %s", p.name, p.PID(), state, p.out.tail(5))
	}
	return nil
}

// ExitCode returns the exit code of a process that has ended, −1 before that
// or if a signal ended it.
func (p *Process) ExitCode() int {
	if !p.hasEnded() {
		return -1
	}
	return p.cmd.ProcessState.ExitCode()
}
