package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/weirproxy/weir/api/config"
	"github.com/weirproxy/weir/internal/cli"
	"github.com/weirproxy/weir/internal/log"
	"github.com/weirproxy/weir/internal/runner"
	"github.com/weirproxy/weir/sidecar"
	"github.com/weirproxy/weir/sidecar/memory"
	"github.com/weirproxy/weir/sidecar/procs"
)

// beyondGrace is what the process may take over the sidecar's own grace before it is given up.
const beyondGrace = 2 * time.Second

func runCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Answer checks until SIGTERM",
		Long: `Answer checks until SIGTERM, then report what is left and end (exit code 0). It starts whatever is away, says in the log and
in /readyz what it waits for, and takes up work when that comes.`,
		Args: cobra.NoArgs,
	}
	configured := cli.Configure(cmd, config.DefaultSidecar())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cfg, err := load(configured)
		if err != nil {
			return err
		}
		logger := log.New(cmd.ErrOrStderr(), cfg.level, program)
		fit := memory.Set(cfg.sidecar.MaxCounters)
		cfg.sidecar.MaxCounters = fit.Counters
		logger.Info("memory", fit.Fields()...)
		adapt, cores := procs.Start()
		logger.Info("cores at most", zap.Int(log.Count, cores))
		s, err := sidecar.New(cfg.sidecar, logger)
		if err != nil {
			return err
		}
		logger.Info("starting", zap.String(log.Address, cfg.sidecar.Listen),
			zap.String(log.Pod, fmt.Sprintf("%s/%s", cfg.sidecar.Namespace, cfg.sidecar.Pod)))
		err = runner.Run(cmd.Context(), cfg.sidecar.Grace+beyondGrace,
			runner.Part{Name: "sidecar", Run: s.Run}, runner.Part{Name: "memory", Run: fit.Run},
			runner.Part{Name: "cores", Run: adapt})
		if err == nil {
			logger.Info("ended")
		}
		return err
	}
	return cmd
}
