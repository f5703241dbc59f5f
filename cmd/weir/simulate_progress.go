package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/term"
)

// progress tells a person at a terminal which scenario is running, if it takes long.
type progress struct {
	out  io.Writer
	all  int
	done int
}

// newProgress says nothing where out is no terminal.
func newProgress(out io.Writer, all int) *progress {
	file, ok := out.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) { //nolint:gosec // a descriptor is small
		out = nil
	}
	return &progress{out: out, all: all}
}

// of begins a scenario; the function that it returns ends it.
func (p *progress) of(name string) (stop func()) {
	p.done++
	if p.out == nil {
		return func() {}
	}
	end := make(chan struct{})
	var told sync.WaitGroup
	told.Go(func() { p.tell(fmt.Sprintf("%q (%d of %d)", name, p.done, p.all), end) })
	return func() {
		close(end)
		told.Wait()
	}
}

// tell writes a line that is gone in the end.
func (p *progress) tell(what string, end <-chan struct{}) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for seconds := 1; ; seconds++ {
		select {
		case <-tick.C:
			fmt.Fprintf(p.out, "\rrunning %s: %d s\x1b[K", what, seconds)
		case <-end:
			if seconds > 1 {
				fmt.Fprint(p.out, "\r\x1b[K")
			}
			return
		}
	}
}
