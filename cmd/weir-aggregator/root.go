package main

import (
	"github.com/spf13/cobra"

	"github.com/weirproxy/weir/api/config"
	"github.com/weirproxy/weir/internal/cli"
)

const program = "weir-aggregator"

func root() *cobra.Command {
	r := cli.Root(program, "Owns usage partitions: totals, decisions", `weir-aggregator owns usage partitions: it adds up what sidecars report, keeps the totals in Redis, decides, and tells every
sidecar. Several share the partitions. It also makes the topics and publishes a directory of policies.`)
	r.AddCommand(runCommand(), validateCommand(), topicsCommand(), cli.Version(program),
		cli.Healthcheck(program, config.DefaultAggregator(), func(c config.Aggregator) config.Admin { return c.Admin }))
	return r
}
