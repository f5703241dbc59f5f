package containers

import (
	"fmt"
	"strings"
)

// instruction is one of a Containerfile: its name in capitals, and the rest of the line.
type instruction struct{ name, rest string }

// stage is what one FROM begins.
type stage struct {
	name, base   string
	instructions []instruction
}

// containerfile is one as far as these tests read it.
type containerfile struct {
	args   []instruction // before the first FROM
	stages []stage
}

// read reads a Containerfile: comments, continued lines, and stages that have names.
func read(text string) (containerfile, error) {
	var c containerfile
	for i, line := range strings.Split(joined(text), "\n") {
		name, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		if name == "" || strings.HasPrefix(name, "#") {
			continue
		}
		in := instruction{strings.ToUpper(name), strings.TrimSpace(rest)}
		switch {
		case in.name == "FROM":
			s, err := from(in.rest)
			if err != nil {
				return c, fmt.Errorf("instruction %d: %w", i+1, err)
			}
			c.stages = append(c.stages, s)
		case len(c.stages) == 0:
			c.args = append(c.args, in)
		default:
			last := &c.stages[len(c.stages)-1]
			last.instructions = append(last.instructions, in)
		}
	}
	return c, nil
}

// joined has each instruction on one line.
func joined(text string) string {
	return strings.ReplaceAll(text, "\\\n", " ")
}

func from(rest string) (stage, error) {
	words := strings.Fields(rest)
	if len(words) > 0 && strings.HasPrefix(words[0], "--platform=") {
		words = words[1:]
	}
	if len(words) != 3 || !strings.EqualFold(words[1], "AS") {
		return stage{}, fmt.Errorf("FROM %s: want a base, AS and a name", rest)
	}
	return stage{name: words[2], base: words[0]}, nil
}

// stage is the one of a name.
func (c containerfile) stage(name string) (stage, bool) {
	for _, s := range c.stages {
		if s.name == name {
			return s, true
		}
	}
	return stage{}, false
}

// arg is the default of an argument before the first stage; "" where there is none.
func (c containerfile) arg(name string) string {
	for _, a := range c.args {
		if key, value, ok := strings.Cut(a.rest, "="); ok && a.name == "ARG" && key == name {
			return value
		}
	}
	return ""
}

// all are the stage's instructions of a name.
func (s stage) all(name string) []string {
	var out []string
	for _, in := range s.instructions {
		if in.name == name {
			out = append(out, in.rest)
		}
	}
	return out
}
