package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/weirproxy/weir/internal/cli"
	"github.com/weirproxy/weir/internal/demo"
)

func demoCommand() *cobra.Command {
	var o demo.Options
	var headers []string
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Run the whole of weir on this machine, under load, and show what happens",
		Long: `Run the whole of weir on this machine: a broker and a store embedded in this process (or your own), an aggregator,
three sidecars, a real Envoy before each where one is found, and a load of three times the quota, spread 60/30/10.
A table shows each pod's last second; Ctrl-C ends it all. --for 10s --json runs bounded and prints one JSON object.

With --kafka, topics of its own are used (weir-demo.*). Give --redis a server that no installation of weir uses.`,
		Args: cobra.NoArgs,
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.DurationVar(&o.For, "for", 0, "end after this long; 0: at Ctrl-C")
	f.BoolVar(&o.JSON, "json", false, "print one JSON object last; all else goes to standard error")
	f.StringVar(&o.Policy, "policy", "", "policy `FILE` in place of the demo's own")
	f.IntVar(&o.Pods, "pods", 3, "sidecars to run")
	f.Float64Var(&o.Load, "load", 0, "requests/s over all pods; 0: three times the limit")
	f.StringVar(&o.Kafka, "kafka", "", "`HOST:PORT` of a Kafka broker of yours")
	f.StringVar(&o.Redis, "redis", "", "`HOST:PORT` of a Redis of yours")
	f.StringVar(&o.Envoy, "envoy", "", "Envoy `BINARY` (default: .tools/bin/envoy, else the PATH's)")
	f.BoolVar(&o.NoEnvoy, "no-envoy", false, "ask the sidecars directly")
	f.StringVar(&o.Method, "method", "GET", "method of the load's requests")
	f.StringVar(&o.Path, "path", "/", "path of the load's requests")
	f.StringArrayVar(&headers, "header", nil, "`NAME: VALUE` of the load's requests (default 'x-api-key: demo')")
	f.BoolVarP(&o.Verbose, "verbose", "v", false, "write the programs' logs to standard error")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		for _, h := range headers {
			name, value, ok := strings.Cut(h, ":")
			if !ok {
				return cli.Usage(fmt.Errorf("--header %q: write 'name: value'", h))
			}
			if o.Headers == nil {
				o.Headers = map[string]string{}
			}
			o.Headers[strings.ToLower(strings.TrimSpace(name))] = strings.TrimSpace(value)
		}
		o.Out, o.Err = cmd.OutOrStdout(), cmd.ErrOrStderr()
		if file, ok := o.Out.(*os.File); ok {
			o.Terminal = term.IsTerminal(int(file.Fd()))
		}
		return demo.Run(cmd.Context(), o)
	}
	return cmd
}
