package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// endWithin is what a process may take to end by itself.
const endWithin = 5 * time.Second

// process is one that runs until it is ended.
type process struct {
	name string
	cmd  *exec.Cmd
	log  string
	done chan struct{} // closed once it has ended; err may be read then
	err  error
}

// start starts a process whose output goes to a file of dir. The caller ends it.
func start(dir, name string, env []string, args ...string) (*process, error) {
	p := &process{name: name, log: filepath.Join(dir, name+".log"), done: make(chan struct{})}
	out, err := os.Create(p.log)
	if err != nil {
		return nil, err
	}
	defer out.Close() // the process has a copy
	p.cmd = exec.Command(args[0], args[1:]...)
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.Stdout, p.cmd.Stderr, p.cmd.SysProcAttr = out, out, apart()
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() {
		defer close(p.done)
		p.err = p.cmd.Wait()
	}()
	return p, nil
}

// ended says how a process ended that nobody asked to.
func (p *process) ended() error {
	err := p.err
	if err == nil {
		err = errors.New("exit status 0")
	}
	return fmt.Errorf("%s ended by itself (%w); it said:\n%s", p.name, err, lastLines(p.log))
}

// end ends a process and those that it started: by SIGTERM, and by SIGKILL if that takes too long.
func (p *process) end() {
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGTERM) // none is left: it has ended
	select {
	case <-p.done:
	case <-time.After(endWithin):
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
		<-p.done
	}
}

func lastLines(file string) string {
	b, err := os.ReadFile(file)
	if err != nil || len(b) == 0 {
		return "nothing"
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	return strings.Join(lines[max(0, len(lines)-5):], "\n")
}

// until calls ready until it returns nil: half a minute, or until a process ends, or ctx does.
func until(ctx context.Context, processes []*process, what string, ready func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for {
		err := ready(ctx)
		if err == nil {
			return nil
		}
		for _, p := range processes {
			select {
			case <-p.done:
				return p.ended()
			default:
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w (%w)", what, err, ctx.Err())
		case <-time.After(25 * time.Millisecond):
		}
	}
}
