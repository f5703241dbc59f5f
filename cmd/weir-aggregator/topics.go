package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/weirproxy/weir/api/config"
	"github.com/weirproxy/weir/internal/bus"
	"github.com/weirproxy/weir/internal/cli"
)

func topicsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "topics",
		Short: "Make or check weir's topics",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return cli.Usage(errors.New("name a command: ensure, check"))
		},
	}
	cmd.AddCommand(ensureCommand(), checkCommand())
	return cmd
}

func ensureCommand() *cobra.Command {
	var withACLs, dryRun bool
	var who bus.Principals
	cmd := &cobra.Command{
		Use:   "ensure",
		Short: "Make the topics that are missing and set the settings that differ",
		Long: `Make the topics that are missing and set the settings that differ; each change is printed. What only a person can
change (the number of partitions) is reported, and the exit code is then 1.

With --acls, the rights of each program are added too, for the principals named. None is taken away.`,
		Args: cobra.NoArgs,
	}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "print what would change, and change nothing")
	cmd.Flags().BoolVar(&withACLs, "acls", false, "add the programs' rights too")
	cmd.Flags().StringVar(&who.Sidecar, "acl-sidecar", "User:weir-sidecar", "`PRINCIPAL` of the sidecars; empty: none")
	cmd.Flags().StringVar(&who.Aggregator, "acl-aggregator", "User:weir-aggregator", "`PRINCIPAL` of the aggregators; empty: none")
	cmd.Flags().StringVar(&who.Controller, "acl-controller", "User:weir-controller", "`PRINCIPAL` of the controller; empty: none")
	cmd.Flags().StringVar(&who.CLI, "acl-cli", "User:weir", "`PRINCIPAL` of weir apply; empty: none")
	cmd.Flags().StringVar(&who.Check, "acl-check", "User:weir-check", "`PRINCIPAL` of weir check; empty: none")
	run := topicsRun(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return run(cmd, func(ctx context.Context, c *bus.Client, cfg config.Aggregator) error {
			topics := cli.Topics(cfg.Kafka.Topics, cfg.Topics)
			if err := report(cmd, dryRun)(c.Ensure(ctx, topics, dryRun)); err != nil || !withACLs {
				return err
			}
			who.Group = cfg.Group
			rules, err := c.EnsureACLs(ctx, topics, who, dryRun)
			for _, r := range rules {
				fmt.Fprintln(cmd.OutOrStdout(), r)
			}
			return err
		})
	}
	return cmd
}

func checkCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Say how the topics differ from what they should be (exit code 1 if they do)",
		Args:  cobra.NoArgs,
	}
	run := topicsRun(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return run(cmd, func(ctx context.Context, c *bus.Client, cfg config.Aggregator) error {
			changes, err := c.Check(ctx, cli.Topics(cfg.Kafka.Topics, cfg.Topics))
			if err := report(cmd, true)(changes, err); err != nil {
				return err
			}
			if len(changes) > 0 {
				return fmt.Errorf("%d differences; `weir-aggregator topics ensure` puts right what can be", len(changes))
			}
			return nil
		})
	}
	return cmd
}

// report prints changes, and fails for those that are left to a person.
func report(cmd *cobra.Command, dryRun bool) func([]bus.Change, error) error {
	return func(changes []bus.Change, err error) error {
		manual := 0
		for _, c := range changes {
			fmt.Fprintln(cmd.OutOrStdout(), c)
			if c.Manual {
				manual++
			}
		}
		if err != nil {
			return err
		}
		if len(changes) == 0 {
			fmt.Fprintln(cmd.OutOrStdout(), "all topics are as they should be")
		}
		if manual > 0 && !dryRun {
			return fmt.Errorf("%d differences cannot be changed by this program", manual)
		}
		return nil
	}
}

// topicsRun adds configuration and time-out to cmd, and returns what runs a function with a client.
func topicsRun(cmd *cobra.Command) func(*cobra.Command, func(context.Context, *bus.Client, config.Aggregator) error) error {
	timeout := cmd.Flags().Duration("timeout", 30*time.Second, "give up after this long")
	configured := cli.Configure(cmd, config.DefaultAggregator())
	return func(cmd *cobra.Command, f func(context.Context, *bus.Client, config.Aggregator) error) error {
		cfg, err := configured.Load()
		if err != nil {
			return err
		}
		kafka := cli.Bus(cfg.Kafka, program)
		if err := kafka.Validate(); err != nil {
			return fmt.Errorf("kafka: %w", err)
		}
		if err := cli.Topics(cfg.Kafka.Topics, cfg.Topics).Validate(); err != nil {
			return err
		}
		waiting := ""
		kafka.State = func(reason string) { waiting = reason }
		ctx, cancel := context.WithTimeout(cmd.Context(), *timeout)
		defer cancel()
		client, err := bus.Dial(ctx, kafka, zap.NewNop())
		if err != nil {
			return fmt.Errorf("connect to Kafka: %w (%s)", err, waiting)
		}
		defer func() { _ = client.Close() }()
		return f(ctx, client, cfg)
	}
}
