package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/weirproxy/weir/internal/cli"
)

func validateCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "validate FILE…",
		Short: "Check policy files: every error with its line and field",
		Long: `Check QuotaPolicy files (YAML or JSON, several documents a file; a directory stands for its policy files,
- for standard input). Every error is printed with file, line and field.

Exit codes: 0 all are valid, 1 some are not, 2 wrong usage.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			docs, err := readPolicies(cmd, args)
			if err != nil {
				fmt.Fprintln(cmd.ErrOrStderr(), err)
				return cli.ErrSilent
			}
			for _, d := range docs {
				fmt.Fprintf(cmd.OutOrStdout(), "%s: %s is valid\n", d.file, nameOf(d.spec))
			}
			return nil
		},
	}
}
