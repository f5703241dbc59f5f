package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weirproxy/weir/internal/cli"
	"github.com/weirproxy/weir/internal/simulate"
	"github.com/weirproxy/weir/internal/simulate/measure"
	"github.com/weirproxy/weir/internal/simulate/scenario"
)

// runScenario runs one scenario as many times as asked.
type runScenario func(context.Context, *scenario.Scenario, simulate.Options) ([]*measure.Run, error)

// simulation is what the command line asks for.
type simulation struct {
	files           []string
	policy, traffic string
	sets            []string
	simulate.Options
	json, check bool
	plot        string
}

func simulateCommand(run runScenario) *cobra.Command {
	var o simulation
	cmd := &cobra.Command{
		Use:   "simulate {FILE… | --policy FILE --traffic FILE} [--json] [--seed N] [--runs N] [--set FIELD=VALUE]… [--plot FILE.svg]",
		Short: "Run weir's own code in virtual time, and show how well it holds a quota",
		Long: `Run pods, aggregator and store in virtual time, on the code that ships, over a network with delays and faults, and measure
what they admitted: how far a limit was exceeded, how much less was admitted than by an exact limiter, how soon it was
enforced, whom it refused without need.

FILE is a scenario (a directory stands for its files, - for standard input): docs/simulate.md has the format. With --policy and
--traffic the question is what a policy, as weir apply takes it, will do with some traffic: the latter file is a scenario
without a quota. The same files and seed give the same figures to the last digit.

A table is printed, and plots of the first run where they are four at most. --json prints one object a scenario, a line each,
and nothing else. --plot writes a picture of the first run; with several scenarios or rates one of each, named
FILE-scenario-limit.svg.

Exit codes: 0 done, 1 a file is not valid, a run failed, or with --check a reference is missed, 2 wrong usage.`,
		Example: `weir simulate test/scenarios/S1.yaml --plot s1.svg
weir simulate test/scenarios/S1.yaml --set pods=100 --set rate.limit=50 --runs 10
weir simulate --policy examples/policies/each-client.yaml --traffic examples/simulate/burst.yaml`,
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&o.policy, "policy", "", "policy `FILE` to try; needs --traffic")
	f.StringVar(&o.traffic, "traffic", "", "`FILE` of pods and traffic, for --policy")
	f.BoolVar(&o.json, "json", false, "print one JSON object a scenario, a line each")
	f.Uint64Var(&o.Seed, "seed", 0, "seed `N` of the first run, the next ones count up; 0: the scenario's")
	f.IntVar(&o.Runs, "runs", 0, "`N` runs of each scenario; 0: the scenario's")
	f.StringArrayVar(&o.sets, "set", nil, "`FIELD=VALUE` in place of the file's, as in traffic[0].batch=4; may be repeated")
	f.StringVar(&o.plot, "plot", "", "write a picture to `FILE.svg`")
	f.BoolVar(&o.check, "check", false, "fail where a scenario's reference is not held")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		o.files = args
		if err := o.valid(); err != nil {
			return cli.Usage(err)
		}
		return o.run(cmd, run)
	}
	return cmd
}

// valid says what is wrong with the command line.
func (o *simulation) valid() error {
	switch {
	case len(o.files) == 0 && o.policy == "" && o.traffic == "":
		return errors.New("name what to run: a scenario, as in\n  weir simulate test/scenarios/S1.yaml\n" +
			"or a policy and the traffic it is to meet, as in\n" +
			"  weir simulate --policy examples/policies/each-client.yaml --traffic examples/simulate/burst.yaml")
	case o.policy == "" && o.traffic != "":
		return errors.New("--traffic: name the policy that it is to meet, with --policy FILE; a scenario with its own quota takes no flag")
	case o.policy != "" && o.traffic == "":
		return errors.New("--policy: name the traffic that it is to meet, with --traffic FILE, such as examples/simulate/burst.yaml")
	case o.policy != "" && len(o.files) > 0:
		return fmt.Errorf("%s: give scenarios or --policy with --traffic, one of them", o.files[0])
	case o.policy == "-" && o.traffic == "-":
		return errors.New("--traffic -: standard input is the policy's already")
	case o.Runs < 0 || o.Runs > maxRuns:
		return fmt.Errorf("--runs %d: give 1 to %d, or 0 for the scenario's", o.Runs, maxRuns)
	case o.plot != "" && !strings.HasSuffix(o.plot, ".svg"):
		return fmt.Errorf("--plot %s: the picture is SVG; give a name that ends in .svg", o.plot)
	}
	return nil
}

// maxRuns is as many as a scenario may ask for.
const maxRuns = 10_000

// run loads everything before it runs anything.
func (o *simulation) run(cmd *cobra.Command, run runScenario) error {
	scenarios, err := o.load(cmd)
	if err != nil {
		fmt.Fprintln(cmd.ErrOrStderr(), err)
		return cli.ErrSilent
	}
	out := newSimulationOutput(o, cmd.OutOrStdout(), scenarios)
	progress := newProgress(cmd.ErrOrStderr(), len(scenarios))
	for _, s := range scenarios {
		stop := progress.of(s.Name)
		runs, err := run(cmd.Context(), s, o.Options)
		stop()
		switch {
		case errors.Is(err, context.Canceled):
			return errors.New("interrupted")
		case err != nil:
			return fmt.Errorf("%s: %w", s.Name, err)
		}
		if err := out.add(s, runs); err != nil {
			return err
		}
	}
	if err := out.end(); err != nil {
		return err
	}
	return o.judge(cmd, out)
}

// judge fails a run with --check whose references are not held.
func (o *simulation) judge(cmd *cobra.Command, out *simulationOutput) error {
	if !o.check {
		return nil
	}
	missed := 0
	for _, r := range out.results {
		for _, m := range r.Misses {
			missed++
			if o.json {
				fmt.Fprintf(cmd.ErrOrStderr(), "%s: reference missed: %s\n", r.Name, m)
			}
		}
	}
	if missed > 0 {
		return fmt.Errorf("%d references are missed", missed)
	}
	return nil
}
