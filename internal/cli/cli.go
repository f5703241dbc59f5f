// Package cli is what the programs' command lines have in common: exit codes, how errors reach a
// person, configuration from file and flags, and the version and healthcheck commands.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weirproxy/weir/internal/configfile"
	"github.com/weirproxy/weir/internal/version"
)

// Exit codes of every program.
const (
	ExitOK     = 0
	ExitFailed = 1 // the command could not do its work, or found something invalid
	ExitUsage  = 2 // the command line makes no sense
)

// Streams are what a command reads and writes.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// ErrSilent ends a command with ExitFailed where it has said everything itself.
var ErrSilent = errors.New("failed")

type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// Usage marks err as a mistake on the command line.
func Usage(err error) error { return usageError{err} }

// Execute runs root with args and returns the exit code; what went wrong is on streams.Err.
func Execute(ctx context.Context, root *cobra.Command, args []string, s Streams) int {
	root.SetArgs(args)
	root.SetIn(s.In)
	root.SetOut(s.Out)
	root.SetErr(s.Err)
	root.SilenceUsage, root.SilenceErrors = true, true
	root.CompletionOptions.HiddenDefaultCmd = true
	if err := known(root, args); err != nil {
		fmt.Fprintf(s.Err, "%s: %v\nSee %s --help.\n", root.Name(), err, root.Name())
		return ExitUsage
	}
	started := false // what fails before a command runs is a mistake on the command line
	root.PersistentPreRun = func(*cobra.Command, []string) { started = true }
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return ExitOK
	}
	var usage usageError
	if !started || errors.As(err, &usage) {
		fmt.Fprintf(s.Err, "%s: %v\nSee %s --help.\n", cmd.CommandPath(), err, cmd.CommandPath())
		return ExitUsage
	}
	if !errors.Is(err, ErrSilent) {
		fmt.Fprintf(s.Err, "%s: %v\n", cmd.CommandPath(), err)
	}
	return ExitFailed
}

// known refuses a command that is not there, before its flags are found to be unknown.
func known(root *cobra.Command, args []string) error {
	if len(args) == 0 || strings.HasPrefix(args[0], "-") || strings.HasPrefix(args[0], "__complete") {
		return nil
	}
	var names []string
	for _, c := range root.Commands() {
		if c.Name() == args[0] || c.HasAlias(args[0]) {
			return nil
		}
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	if args[0] == "help" || args[0] == "completion" {
		return nil
	}
	if near, ok := configfile.Nearest(args[0], names); ok {
		return fmt.Errorf("unknown command %q; did you mean %s?", args[0], near)
	}
	return fmt.Errorf("unknown command %q; known: %s", args[0], strings.Join(names, ", "))
}

// Root is a program's root command, which only has others below it.
func Root(program, short, long string) *cobra.Command {
	return &cobra.Command{
		Use:   program,
		Short: short,
		Long:  long + "\n\nExit codes: 0 done, 1 failed or invalid, 2 wrong usage.",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var names []string
			for _, c := range cmd.Commands() {
				if c.IsAvailableCommand() {
					names = append(names, c.Name())
				}
			}
			return Usage(fmt.Errorf("name a command: %s", strings.Join(names, ", ")))
		},
	}
}

// Version is the command that prints which build this is.
func Version(program string) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		Run: func(cmd *cobra.Command, _ []string) {
			fmt.Fprintln(cmd.OutOrStdout(), version.Line(program))
		},
	}
}
