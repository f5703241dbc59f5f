// Package clidoc writes the reference page of a program's commands from the commands themselves. Only
// tests use it: no program carries it.
package clidoc

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/weirproxy/weir/internal/configfile"
)

// Current is an error where the page at path is not what Page gives; with update it writes the page.
func Current(path string, root *cobra.Command, update bool) error {
	want := Page(root)
	if update {
		if err := os.WriteFile(path, want, 0o644); err != nil { //nolint:gosec // documentation, for all to read
			return fmt.Errorf("write the reference page: %w", err)
		}
		return nil
	}
	got, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read the reference page: %w; run make docs", err)
	}
	if !bytes.Equal(got, want) {
		return fmt.Errorf("%s is not what the commands say: run make docs", filepath.Base(path))
	}
	return nil
}

// Page is the reference of root and all commands below it.
func Page(root *cobra.Command) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "<!-- Generated from the commands by make docs. Do not edit. -->\n# %s\n\n%s\n", root.Name(), text(root))
	each(root, func(c *cobra.Command) { command(&b, c) })
	return b.Bytes()
}

// each visits the commands that do something.
func each(c *cobra.Command, visit func(*cobra.Command)) {
	for _, sub := range c.Commands() {
		if !sub.IsAvailableCommand() || sub.Name() == "help" {
			continue
		}
		if sub.HasSubCommands() {
			each(sub, visit)
			continue
		}
		visit(sub)
	}
}

func command(b *bytes.Buffer, c *cobra.Command) {
	fmt.Fprintf(b, "\n## %s\n\n```\n%s\n```\n\n%s\n", c.CommandPath(), strings.TrimSuffix(c.UseLine(), " [flags]"), text(c))
	if c.Example != "" {
		fmt.Fprintf(b, "\n```\n%s\n```\n", strings.TrimRight(c.Example, "\n"))
	}
	settings, rows := 0, ""
	c.NonInheritedFlags().VisitAll(func(f *pflag.Flag) {
		switch {
		case f.Hidden || f.Name == "help":
		case configfile.IsSetting(f):
			settings++
		default:
			rows += row(f)
		}
	})
	if rows != "" {
		fmt.Fprintf(b, "\n| flag | default | what it is for |\n|---|---|---|\n%s", rows)
	}
	if settings > 0 {
		fmt.Fprintf(b, "\nEach of its settings has a flag too: [configuration](configuration.md).\n")
	}
}

func text(c *cobra.Command) string {
	if c.Long != "" {
		return c.Long
	}
	return c.Short + "."
}

func row(f *pflag.Flag) string {
	name, usage := pflag.UnquoteUsage(f)
	flag := "--" + f.Name
	if f.Shorthand != "" {
		flag = "-" + f.Shorthand + ", " + flag
	}
	if name != "" {
		flag += " " + name
	}
	value := f.DefValue
	if value == "false" || value == "[]" || value == "" {
		value = ""
	} else {
		value = "`" + value + "`"
	}
	return fmt.Sprintf("| `%s` | %s | %s |\n", flag, value, strings.ReplaceAll(usage, "|", `\|`))
}
