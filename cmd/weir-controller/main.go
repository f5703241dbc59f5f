// Command weir-controller brings QuotaPolicy objects to the sidecars, says in their status where they are in
// force, and injects sidecars into pods.
package main

import (
	"context"
	"os"

	"github.com/weirproxy/weir/internal/cli"
	"github.com/weirproxy/weir/internal/runner"
)

func main() {
	ctx, stop := runner.SignalContext(context.Background())
	code := cli.Execute(ctx, root(), os.Args[1:], cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr})
	stop()
	os.Exit(code)
}
