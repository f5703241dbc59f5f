package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirproxy/weir/aggregator"
	"github.com/weirproxy/weir/api/config"
	"github.com/weirproxy/weir/internal/cli"
	"github.com/weirproxy/weir/internal/log"
	"github.com/weirproxy/weir/internal/runner"
)

// beyondGrace is what the process may take over the aggregator's own grace before it is given up.
const beyondGrace = 2 * time.Second

func runCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Own partitions until SIGTERM",
		Long: `Own usage partitions until SIGTERM, then hand them over and end (exit code 0). It starts whatever is away, says in the log
and in /readyz what it waits for, and takes up work when that comes. Any number may run.`,
		Args: cobra.NoArgs,
	}
	configured := cli.Configure(cmd, config.DefaultAggregator())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cfg, err := load(configured)
		if err != nil {
			return err
		}
		a, err := aggregator.New(cfg.aggregator, log.New(cmd.ErrOrStderr(), cfg.level, program))
		if err != nil {
			return err
		}
		return runner.Run(cmd.Context(), cfg.aggregator.Grace+beyondGrace, runner.Part{Name: "aggregator", Run: a.Run})
	}
	return cmd
}

func validateCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "validate",
		Short: "Check the configuration: every error, with its place",
		Args:  cobra.NoArgs,
	}
	configured := cli.Configure(cmd, config.DefaultAggregator())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cfg, err := load(configured)
		if err != nil {
			return err
		}
		fmt.Fprintf(cmd.OutOrStdout(), "%s: valid; this is %s of group %s\n",
			configured.Source(), cfg.aggregator.WithDefaults().Instance, cfg.aggregator.Group)
		return nil
	}
	return cmd
}
