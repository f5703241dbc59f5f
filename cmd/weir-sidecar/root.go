package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/weirproxy/weir/api/config"
	"github.com/weirproxy/weir/internal/cli"
)

const program = "weir-sidecar"

func root() *cobra.Command {
	r := cli.Root(program, "Answers Envoy's checks for one pod from local memory", `weir-sidecar is the check server beside one Envoy (ext_authz): it answers from local memory, reports usage to Kafka and
takes up decisions and policies from there.`)
	r.AddCommand(runCommand(), validateCommand(), waitCommand(), cli.Version(program),
		cli.Healthcheck(program, config.DefaultSidecar(), func(c config.Sidecar) config.Admin { return c.Admin }))
	return r
}

func validateCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "validate",
		Short: "Check the configuration: every error, with its place",
		Args:  cobra.NoArgs,
	}
	configured := cli.Configure(cmd, config.DefaultSidecar())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cfg, err := load(configured)
		if err != nil {
			return err
		}
		fmt.Fprintf(cmd.OutOrStdout(), "%s: valid; this is %s/%s, listening on %s\n",
			configured.Source(), cfg.sidecar.Namespace, cfg.sidecar.Pod, cfg.sidecar.Listen)
		return nil
	}
	return cmd
}
