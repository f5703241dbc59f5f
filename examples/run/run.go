package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/weirproxy/weir/internal/embedded"
)

// installation is all that runs, in a directory of its own.
type installation struct {
	options
	dir, envoy, key string
	kafka           *embedded.Kafka
	redis           *embedded.Redis
	processes       []*process // in the order of their start
	pods            []*pod
}

// run runs the example until ctx ends. Whatever it started has ended when it returns.
func run(ctx context.Context, o options) (err error) {
	i := &installation{options: o}
	if i.envoy, err = findEnvoy(); err != nil {
		return err
	}
	if _, err := os.Stat(i.program("weir-sidecar")); err != nil {
		return fmt.Errorf("weir's programs: %w; make build makes them, and this is run from the top of the source", err)
	}
	if i.dir, err = os.MkdirTemp("", "weir-example-"); err != nil {
		return err
	}
	defer os.RemoveAll(i.dir)
	defer i.end()
	if err = i.start(ctx); err == nil {
		err = i.show(ctx)
	}
	if ctx.Err() != nil {
		return nil // asked to end, at whatever moment
	}
	if err != nil {
		return err
	}
	i.sayf("\nCtrl-C ends all of it.\n")
	return i.wait(ctx)
}

func findEnvoy() (string, error) {
	for _, candidate := range []string{".tools/bin/envoy", "envoy"} {
		if path, err := exec.LookPath(candidate); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("no Envoy in .tools/bin or on the PATH: make envoy installs one")
}

// start starts everything, from the bottom up, and returns once the policies are in force.
func (i *installation) start(ctx context.Context) error {
	if err := i.stores(); err != nil {
		return err
	}
	if err := i.aggregator(ctx); err != nil {
		return err
	}
	for n, s := range i.services {
		if err := i.pod(ctx, n, s); err != nil {
			return err
		}
	}
	for _, p := range i.pods {
		if err := until(ctx, i.processes, p.name, p.ready); err != nil {
			return err
		}
	}
	return nil
}

func (i *installation) stores() (err error) {
	if i.kafka, err = embedded.StartKafka(""); err != nil {
		return err
	}
	if i.redis, err = embedded.StartRedis(""); err != nil {
		return err
	}
	i.sayf("Kafka at %s and Redis at %s, within this process\n", i.kafka.Addr(), i.redis.Addr())
	// A link, so that an edit of the policy is taken up while this runs.
	policies, err := filepath.Abs(i.policies)
	if err != nil {
		return err
	}
	if _, err := os.Stat(policies); err != nil {
		return fmt.Errorf("%w; run this from the top of weir's source", err)
	}
	if err := os.Mkdir(i.policyDir(), 0o700); err != nil {
		return err
	}
	return os.Symlink(policies, filepath.Join(i.policyDir(), "policy.yaml"))
}

func (i *installation) program(name string) string { return filepath.Join(i.bin, name) }

func (i *installation) policyDir() string { return filepath.Join(i.dir, "policies") }

// aggregator makes the key and the topics, and starts one aggregator.
func (i *installation) aggregator(ctx context.Context) error {
	i.key = filepath.Join(i.dir, "identity.key")
	if _, err := i.output(ctx, i.program("weir"), "key", i.key); err != nil {
		return err
	}
	if _, err := i.output(ctx, i.program("weir-aggregator"), "topics", "ensure", "--kafka-brokers", i.kafka.Addr()); err != nil {
		return err
	}
	return i.launch("aggregator", nil, i.program("weir-aggregator"), "run", "--kafka-brokers", i.kafka.Addr(),
		"--redis-addresses", i.redis.Addr(), "--identity-key-file", i.key, "--policies", i.policyDir(),
		"--admin-address", "unix://"+filepath.Join(i.dir, "aggregator.sock"))
}

// launch prints a command and starts it, to run until the end.
func (i *installation) launch(name string, env []string, args ...string) error {
	i.typed(append(env, args...))
	p, err := start(i.dir, name, env, args...)
	if err == nil {
		i.processes = append(i.processes, p)
	}
	return err
}

// output prints a command, runs it to its end, and returns what it prints.
func (i *installation) output(ctx context.Context, args ...string) ([]byte, error) {
	i.typed(args)
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", strings.Join(args[:2], " "), err, said.String())
	}
	return out, nil
}

// typed prints a command as one would type it, a long one in several lines.
func (i *installation) typed(words []string) {
	line := "$"
	for _, w := range words {
		if strings.HasPrefix(w, "--") && len(line) > 80 {
			i.sayf("%s \\\n", line)
			line = "   "
		}
		line += " " + w
	}
	i.sayf("%s\n", line)
}

func (i *installation) sayf(format string, args ...any) { fmt.Fprintf(i.out, format, args...) }

// wait returns when ctx ends, or with an error when a process does.
func (i *installation) wait(ctx context.Context) error {
	cases := []reflect.SelectCase{{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(ctx.Done())}}
	for _, p := range i.processes {
		cases = append(cases, reflect.SelectCase{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(p.done)})
	}
	if n, _, _ := reflect.Select(cases); n > 0 {
		return i.processes[n-1].ended()
	}
	return nil
}

// end ends everything, in the reverse order of its start.
func (i *installation) end() {
	for n := len(i.processes) - 1; n >= 0; n-- {
		i.processes[n].end()
	}
	if i.redis != nil {
		i.redis.Close()
	}
	if i.kafka != nil {
		i.kafka.Close()
	}
}
