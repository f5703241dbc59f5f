// Command run runs an example on this machine: a Kafka and a Redis within this process, the topics, an aggregator,
// and for each service its own process with a sidecar and an Envoy before it. Each command is printed as one would
// type it.
//
//	go run ./examples/run python            one service
//	go run ./examples/run go python node    three languages, one quota
//	go run ./examples/run envoy             the policy of examples/envoy
//	go run ./examples/run -- ruby app.rb    your own; $PORT says where to listen
//
// It is run from the top of the source, after make build envoy; make example does both. Ctrl-C ends all of it.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/weirproxy/weir/internal/runner"
)

func main() {
	ctx, stop := runner.SignalContext(context.Background())
	code := command(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// command returns the exit code: 0 where a signal ended it, 1 where something could not be run, 2 for a wrong usage.
func command(ctx context.Context, args []string, out, errs io.Writer) int {
	o, err := parse(args, errs)
	if err != nil {
		fmt.Fprintln(errs, "run:", err)
		return 2
	}
	o.out = out
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(errs, "run:", err)
		return 1
	}
	return 0
}

// options are what to run, and for whom.
type options struct {
	example
	// port of the first Envoy; the others have those that follow. 0: any that are free.
	port int
	bin  string // the directory of weir's programs
	out  io.Writer
}

func parse(args []string, errs io.Writer) (options, error) {
	var o options
	var policies, target string
	f := flag.NewFlagSet("run", flag.ContinueOnError)
	f.SetOutput(errs)
	f.StringVar(&policies, "policies", "", "policy `FILE`, in place of the example's; edits are taken up")
	f.StringVar(&target, "target", "", "`NAMESPACE/KIND/NAME` whose requests are counted, in place of the example's")
	f.IntVar(&o.port, "port", 8080, "`PORT` of the first Envoy, the others follow; 0: any that are free")
	f.StringVar(&o.bin, "bin", "bin", "`DIRECTORY` of weir's programs")
	own := len(args)
	for i, a := range args {
		if a == "--" {
			own = i
			break
		}
	}
	if err := f.Parse(args[:own]); err != nil {
		return o, err
	}
	var err error
	if o.example, err = chosen(f.Args(), args[min(own+1, len(args)):]); err != nil {
		return o, err
	}
	if policies != "" {
		o.policies = policies
	}
	if target != "" {
		o.target = target
	}
	if strings.Count(o.target, "/") != 2 {
		return o, fmt.Errorf("-target %s: write NAMESPACE/KIND/NAME", o.target)
	}
	return o, nil
}
