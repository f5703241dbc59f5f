// Command with runs another command beside a real Kafka and a real Redis of its
// own, and ends them afterwards:
//
//	go run ./test/with go test ./internal/bus ./aggregator/store
//
// The command finds them by the environment: WEIR_TEST_KAFKA and
// WEIR_TEST_REDIS are their host:port. Packages whose tests know these
// variables run against in-process servers otherwise.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/weirproxy/weir/test/parts"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: with COMMAND [ARGUMENT…]")
		os.Exit(2)
	}
	os.Exit(run(ctx, os.Args[1:]))
}

// run returns the command's exit code, 1 if it could not be run.
func run(ctx context.Context, command []string) (code int) {
	err := parts.Run(func(t parts.T) {
		kafka := parts.StartKafka(t, parts.KafkaOpts{})
		redis := parts.StartRedis(t, parts.RedisOpts{})
		cmd := exec.CommandContext(ctx, command[0], command[1:]...)
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		cmd.Env = append(os.Environ(),
			"WEIR_TEST_KAFKA="+kafka.Addr(),
			"WEIR_TEST_REDIS="+redis.Addr(),
		)
		if err := cmd.Run(); err != nil {
			var exit *exec.ExitError
			if !errors.As(err, &exit) {
				t.Fatalf("%v", err)
			}
			code = max(1, exit.ExitCode())
		}
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, "with:", err)
		return 1
	}
	return code
}
