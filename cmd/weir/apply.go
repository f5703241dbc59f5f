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
	"github.com/weirproxy/weir/internal/identitykey"
)

func applyCommand() *cobra.Command {
	var files []string
	var remove bool
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "apply -f FILE…",
		Short: "Publish policies to an installation, or with --delete take them back",
		Long: `Publish the policies of files (a directory stands for its policy files, - for standard input) to the policy
topic, with origin cli. Sidecars and aggregators take them up at once, without a restart. Nothing is published unless
all files are valid.

Of one name from several origins kube goes before file, file before cli; that is said here where it happens.`,
		Args: cobra.NoArgs,
	}
	cmd.Flags().StringSliceVarP(&files, "filename", "f", nil, "policy `FILE`, directory or -; may be repeated")
	cmd.Flags().BoolVar(&remove, "delete", false, "delete the policies that the files name (origin cli only)")
	cmd.Flags().DurationVar(&timeout, "timeout", 15*time.Second, "give up after this long")
	configured := cli.Configure(cmd, config.DefaultTool())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if len(files) == 0 {
			return cli.Usage(errors.New("name the policies: -f FILE"))
		}
		cfg, err := configured.Load()
		if err != nil {
			return err
		}
		docs, err := readPolicies(cmd, files)
		if err != nil {
			return fmt.Errorf("nothing is published:\n%w", err)
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
		defer cancel()
		return apply(ctx, cmd, cfg, docs, remove)
	}
	return cmd
}

func apply(ctx context.Context, cmd *cobra.Command, cfg config.Tool, docs []document, remove bool) error {
	keys, err := identitykey.Read(cfg.IdentityKeyFile)
	if err != nil {
		return err
	}
	kafka := cli.Bus(cfg.Kafka, "weir-apply")
	if err := kafka.Validate(); err != nil {
		return fmt.Errorf("kafka: %w", err)
	}
	waiting := ""
	kafka.State = func(reason string) { waiting = reason }
	client, err := bus.Dial(ctx, kafka, zap.NewNop())
	if err != nil {
		return fmt.Errorf("connect to Kafka: %w (%s)", err, waiting)
	}
	defer func() { _ = client.Close() }()
	topic := cli.Topics(cfg.Kafka.Topics, config.TopicSettings{}).WithDefaults().Policies
	there, err := readTopic(ctx, client, topic)
	if err != nil {
		return err
	}
	if err := there.check(keys); err != nil {
		return err
	}
	records, err := recordsOf(docs, keys, remove)
	if err != nil {
		return err
	}
	if err := publish(ctx, client, topic, records); err != nil {
		return err
	}
	for _, r := range records {
		fmt.Fprintf(cmd.OutOrStdout(), "%s %s\n", r.Key, map[bool]string{false: "published", true: "deleted"}[remove])
		if other, ok := there.stronger(r.Key); ok && !remove {
			fmt.Fprintf(cmd.ErrOrStderr(), "warning: %s is in force, so %s is not; delete one of them\n", other, r.Key)
		}
	}
	return nil
}
