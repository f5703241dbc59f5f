package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// screen shows one table after the other: in place on a terminal, elsewhere with an empty line between.
type screen struct {
	out   io.Writer
	size  func() (width, height int) // nil: no terminal
	drawn bool
}

func newScreen(out io.Writer) *screen {
	s := &screen{out: out}
	if file, ok := out.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		s.size = func() (width, height int) {
			width, height, err := term.GetSize(int(file.Fd()))
			if err != nil {
				return 80, 24
			}
			return width, height
		}
	}
	return s
}

const (
	clearAll  = "\x1b[2J"
	goHome    = "\x1b[H"
	clearLine = "\x1b[K"
	clearRest = "\x1b[J"
)

// draw shows lines. On a terminal they are cut to its size, or they would not stay in place; the first time, where
// nothing may follow, they are not.
func (s *screen) draw(lines []string, again bool) {
	defer func() { s.drawn = true }()
	if s.size == nil || !again {
		if s.drawn {
			fmt.Fprintln(s.out)
		}
		fmt.Fprintln(s.out, strings.Join(lines, "\n"))
		return
	}
	width, height := s.size()
	var b strings.Builder
	if !s.drawn {
		b.WriteString(clearAll)
	}
	b.WriteString(goHome)
	for _, l := range lines[:min(len(lines), max(height-1, 1))] {
		b.WriteString(cut(l, width) + clearLine + "\n")
	}
	b.WriteString(clearRest)
	fmt.Fprint(s.out, b.String())
}

// cut shortens a text to so many characters, and says so.
func cut(text string, width int) string {
	if runes := []rune(text); len(runes) > width {
		return string(runes[:max(width-1, 0)]) + "…"
	}
	return text
}
