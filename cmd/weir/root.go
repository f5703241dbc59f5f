package main

import (
	"github.com/spf13/cobra"

	"github.com/weirproxy/weir/internal/cli"
	"github.com/weirproxy/weir/internal/simulate"
)

func root() *cobra.Command {
	r := cli.Root("weir", "One quota over every replica, enforced beside each", `weir is the person's tool for weir's quotas.

Try it with "weir demo": everything on this machine, under load, with a table of what happens.`)
	r.AddCommand(demoCommand(), validateCommand(), applyCommand(), explainCommand(), topCommand(), simulateCommand(simulate.RunAll), renderCommand(), hashCommand(), keyCommand(),
		injectCommand(), uninjectCommand(), checkCommand(), cli.Version("weir"))
	return r
}
