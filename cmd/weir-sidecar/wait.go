package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirproxy/weir/api/config"
	"github.com/weirproxy/weir/internal/admin"
	"github.com/weirproxy/weir/internal/cli"
)

// waitPoll is how often a program that is not there yet is asked.
const waitPoll = 50 * time.Millisecond

// waitCommand is for the hooks of a plain container, in an image that holds no shell.
func waitCommand() *cobra.Command {
	var live, pause time.Duration
	cmd := &cobra.Command{
		Use:   "wait {--live DURATION | --for DURATION}",
		Short: "Wait until the running " + program + " listens, or for a time",
		Long: `Wait until the running weir-sidecar listens, and fail if it does not within the time; or wait for a time and end. It
is for postStart and preStop hooks, in images that hold nothing else.`,
		Args: cobra.NoArgs,
	}
	cmd.Flags().DurationVar(&live, "live", 0, "`DURATION` to wait at most until it listens")
	cmd.Flags().DurationVar(&pause, "for", 0, "`DURATION` to wait")
	configured := cli.Configure(cmd, config.DefaultSidecar())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if (live > 0) == (pause > 0) {
			return cli.Usage(errors.New("give one of --live and --for, above 0"))
		}
		cfg, err := configured.Load()
		if err != nil {
			return err
		}
		if pause > 0 {
			sleep(cmd.Context(), pause)
			return nil
		}
		return untilLive(cmd.Context(), cfg.Admin.Address, live)
	}
	return cmd
}

// untilLive waits until the admin server answers: it does so once checks are answered.
func untilLive(ctx context.Context, addr string, atMost time.Duration) error {
	client, err := admin.NewClient(addr)
	if err != nil {
		return err
	}
	bounded, stop := context.WithTimeout(ctx, atMost)
	defer stop()
	for {
		status, _, err := client.Get(bounded, "/healthz")
		if err == nil && status == http.StatusOK {
			return nil
		}
		sleep(bounded, waitPoll)
		if bounded.Err() != nil {
			return fmt.Errorf("%s did not answer within %v; its log says why: %w", addr, atMost, err)
		}
	}
}

// sleep returns after d, or when ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
