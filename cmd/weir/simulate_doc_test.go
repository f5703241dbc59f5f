//go:build !race

package main

import (
	"bytes"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// console is a block of docs/simulate.md: a command of weir's, perhaps cut by head, and what it prints.
var console = regexp.MustCompile("(?s)```console\n\\$ bin/weir ([^\n]*?)(?: \\| head -([0-9]+))?\n(.*?)```")

// The page shows what its commands print, and the picture that one of them makes. Where the last digit may be another,
// with another processor's arithmetic, the commands are run and not compared.
func TestTheCommandReferenceIsCurrentForSimulations(t *testing.T) {
	t.Chdir("../..")
	const page = "docs/simulate.md"
	before, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	shown := 0
	after := console.ReplaceAllFunc(before, func(block []byte) []byte {
		shown++
		at := console.FindSubmatchIndex(block)
		m := console.FindSubmatch(block)
		args := words(string(m[1]))
		picture, made := intoTemp(t, args)
		o := weir(t, "", args...)
		if o.code != 0 {
			t.Fatalf("%s: %s", m[1], o.err)
		}
		if picture != "" {
			current(t, picture, made)
		}
		return slices.Concat(block[:at[6]], head(o.out, string(m[2])), block[at[7]:])
	})
	if shown < 2 {
		t.Errorf("%s shows %d commands", page, shown)
	}
	compare(t, page, before, after)
}

// intoTemp has --plot write elsewhere, and returns both names.
func intoTemp(t *testing.T, args []string) (picture, made string) {
	for i := range args {
		if args[i] == "--plot" {
			picture, made = args[i+1], t.TempDir()+"/made.svg"
			args[i+1] = made
		}
	}
	return picture, made
}

func current(t *testing.T, file, made string) {
	t.Helper()
	got, err := os.ReadFile(made)
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(file)
	if err != nil && !*update {
		t.Fatal(err)
	}
	compare(t, file, want, got)
}

func compare(t *testing.T, file string, before, after []byte) {
	t.Helper()
	switch {
	case bytes.Equal(before, after):
	case *update:
		if err := os.WriteFile(file, after, 0o644); err != nil { //nolint:gosec // documentation, for all to read
			t.Fatal(err)
		}
	case runtime.GOARCH == "amd64":
		t.Errorf("%s does not show what its commands print: run make docs", file)
	}
}

// words takes a command line apart, with single quotes as a shell has them.
func words(line string) []string {
	var out []string
	for _, m := range regexp.MustCompile(`'[^']*'|[^ ]+`).FindAllString(line, -1) {
		out = append(out, strings.Trim(m, "'"))
	}
	return out
}

func head(text, lines string) []byte {
	if n, err := strconv.Atoi(lines); err == nil {
		text = strings.Join(strings.SplitAfter(text, "\n")[:n], "")
	}
	return []byte(text)
}
