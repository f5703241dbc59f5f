// Command weir is the person's tool: it runs the demo, checks and publishes policies, explains what a
// sidecar would answer, and makes keys.
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
