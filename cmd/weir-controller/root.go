package main

import (
	"github.com/spf13/cobra"

	"github.com/weirproxy/weir/api/config"
	"github.com/weirproxy/weir/internal/cli"
)

const program = "weir-controller"

func root() *cobra.Command {
	r := cli.Root(program, "Kubernetes: policies, their status, injection", `weir-controller brings QuotaPolicy objects to the sidecars, says in their status where they are in force, copies the Secrets
that sidecars need, and serves the webhook that injects them. Several run: all serve the webhook, one writes.`)
	r.AddCommand(runCommand(), validateCommand(), cli.Version(program),
		cli.Healthcheck(program, config.DefaultController(), func(c config.Controller) config.Admin {
			return config.Admin{Address: c.Admin.Address}
		}))
	return r
}
