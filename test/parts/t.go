package parts

import (
	"errors"
	"fmt"
	"os"
	"time"
)

// T is what this package needs of a test. Every testing.TB is one; [Run] makes
// one for a command.
type T interface {
	Helper()
	Logf(format string, args ...any)
	Fatalf(format string, args ...any)
	Failed() bool
	Cleanup(f func())
	TempDir() string
}

// Run calls f with a T for a command, or for a TestMain whose tests share
// parts. When f returns, or calls T.Fatalf, the cleanups run, last first, and
// the temporary directories are removed. The error is that of the first
// Fatalf. T.Logf writes to standard error.
func Run(f func(t T)) error {
	s := &scope{}
	defer s.close()
	return s.call(f)
}

// scope is the T of a command. Only Logf is safe for concurrent use.
type scope struct {
	failed   bool
	cleanups []func()
}

// fatal carries a scope's failure from Fatalf up to call.
type fatal struct{ error }

func (s *scope) call(f func(T)) (err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case fatal:
			err = r.error
		default:
			panic(r)
		}
	}()
	f(s)
	return nil
}

func (s *scope) close() {
	for len(s.cleanups) > 0 {
		last := len(s.cleanups) - 1
		f := s.cleanups[last]
		s.cleanups = s.cleanups[:last]
		f()
	}
}

func (s *scope) Helper() {}

func (s *scope) Logf(format string, args ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", args...)
}

func (s *scope) Fatalf(format string, args ...any) {
	s.failed = true
	panic(fatal{fmt.Errorf(format, args...)})
}

func (s *scope) Failed() bool { return s.failed }

func (s *scope) Cleanup(f func()) { s.cleanups = append(s.cleanups, f) }

func (s *scope) TempDir() string {
	dir, err := os.MkdirTemp("", "weir-")
	if err != nil {
		s.Fatalf("make a temporary directory: %w", err)
	}
	s.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// Eventually calls f every 20 ms until it returns nil, and fails the test with
// f's last error if that has not come after the given time. The time guards
// against a hang and is no measure: choose it generously.
func Eventually(t T, within time.Duration, what string, f func() error) {
	t.Helper()
	if err := poll(within, nil, f); err != nil {
		t.Fatalf("%s: not within %v: %v", what, within, err)
	}
}

// errEnded says that what was waited for cannot come any more.
var errEnded = errors.New("process has ended")

// poll calls f until it returns nil, the time is over (f's last error), or
// ended is closed (errEnded).
func poll(within time.Duration, ended <-chan struct{}, f func() error) error {
	deadline := time.Now().Add(within)
	for {
		err := f()
		if err == nil {
			return nil
		}
		if !time.Now().Before(deadline) {
			return err
		}
		select {
		case <-ended:
			return fmt.Errorf("%w (%w)", errEnded, err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}
