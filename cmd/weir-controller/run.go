package main

import (
	"fmt"
	"time"

	"github.com/go-logr/zapr"
	"github.com/spf13/cobra"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/weirproxy/weir/api/config"
	"github.com/weirproxy/weir/controller"
	"github.com/weirproxy/weir/internal/cli"
	"github.com/weirproxy/weir/internal/log"
	"github.com/weirproxy/weir/internal/runner"
)

// beyondGrace is what the process may take over the controller's own grace before it is given up.
const beyondGrace = 2 * time.Second

func runCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Reconcile and inject until SIGTERM",
		Long: `Reconcile policies and serve the injection webhook until SIGTERM, then give the lease back and end (exit code 0). It
starts whatever is away, says in the log and in /readyz what it waits for, and takes up work when that comes.`,
		Args: cobra.NoArgs,
	}
	configured := cli.Configure(cmd, config.DefaultController())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cfg, err := load(configured, followed)
		if err != nil {
			return err
		}
		logger := log.New(cmd.ErrOrStderr(), cfg.level, program)
		// Kubernetes' libraries log by loggers of the whole process.
		ctrl.SetLogger(zapr.NewLogger(logger.Named("kubernetes")))
		klog.SetLogger(zapr.NewLogger(logger.Named("kubernetes")))
		c, err := controller.New(cfg.controller, logger)
		if err != nil {
			return err
		}
		return runner.Run(cmd.Context(), cfg.controller.Grace+beyondGrace, runner.Part{Name: "controller", Run: c.Run})
	}
	return cmd
}

func validateCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "validate",
		Short: "Check the configuration: every error, with its place",
		Args:  cobra.NoArgs,
	}
	configured := cli.Configure(cmd, config.DefaultController())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cfg, err := load(configured, injectorSettings)
		if err != nil {
			return err
		}
		injection := "without injection"
		if cfg.controller.Injection.Enabled {
			injection = "injection at " + cfg.controller.Injection.Address
		}
		fmt.Fprintf(cmd.OutOrStdout(), "%s: valid; %s\n", configured.Source(), injection)
		return nil
	}
	return cmd
}
