package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirproxy/weir/internal/cli"
	"github.com/weirproxy/weir/internal/simulate"
	"github.com/weirproxy/weir/internal/simulate/measure"
	"github.com/weirproxy/weir/internal/simulate/scenario"
)

// engine answers with made-up runs and notes what it was asked.
type engine struct {
	over  float64 // percent, of each run
	err   error
	asked []*scenario.Scenario
	with  []simulate.Options
}

func (e *engine) run(_ context.Context, s *scenario.Scenario, o simulate.Options) ([]*measure.Run, error) {
	e.asked, e.with = append(e.asked, s), append(e.with, o)
	if e.err != nil {
		return nil, e.err
	}
	nan := math.NaN()
	run := &measure.Run{Seed: max(o.Seed, s.Seed), Requests: 900, UsageMessages: 20}
	for _, l := range s.Policy.Limits {
		for range l.Rates {
			run.Rates = append(run.Rates, measure.Rate{
				Limit: l.Name, Title: "10/1s", Counters: 1,
				Values: measure.Values{Over: e.over, Under: 1, OutageOver: nan, OutageUnder: nan, Offered: 900, Admitted: 300, Jain: 1},
				Series: &measure.Series{
					Bin: time.Second, Limit: []float64{10, 10}, Offered: []float64{30, 30}, Admitted: []float64{10, 10},
					Exact: []float64{10, 10}, Window: []float64{1, 1.05},
				},
			})
		}
	}
	return []*measure.Run{run}, nil
}

func (e *engine) simulate(t *testing.T, stdin string, args ...string) outcome {
	t.Helper()
	r := cli.Root("weir", "", "")
	r.AddCommand(simulateCommand(e.run))
	var out, errs bytes.Buffer
	code := cli.Execute(context.WithoutCancel(t.Context()), r, append([]string{"simulate"}, args...),
		cli.Streams{In: strings.NewReader(stdin), Out: &out, Err: &errs})
	return outcome{code, out.String(), errs.String()}
}

const goodScenario = `name: front
pods: 2
rate: {limit: 10, window: 1s}
duration: 2s
steadyFrom: 1s
traffic: [{pods: all, requestsPerSecond: [{at: 0s, value: 30}]}]
`

const goodTraffic = `name: traffic
pods: 3
duration: 8s
traffic: [{pods: all, client: acme, requestsPerSecond: [{at: 0s, value: 30}]}]
`

func TestSimulateSaysHowItIsUsed(t *testing.T) {
	good := write(t, "good.yaml", goodScenario)
	bad := write(t, "bad.yaml", strings.Replace(goodScenario, "pods: 2", "pods: -2\npodz: 3", 1))
	policy, traffic := write(t, "policy.yaml", goodPolicy), write(t, "traffic.yaml", goodTraffic)
	for name, tt := range map[string]struct {
		args []string
		code int
		want []string
	}{
		"nothing":          {nil, 2, []string{"weir simulate test/scenarios/S1.yaml", "--policy examples/", "--traffic examples/"}},
		"no traffic":       {[]string{"--policy", policy}, 2, []string{"--traffic FILE"}},
		"no policy":        {[]string{"--traffic", traffic}, 2, []string{"--policy FILE"}},
		"both ways":        {[]string{good, "--policy", policy, "--traffic", traffic}, 2, []string{"one of them"}},
		"one standard in":  {[]string{"--policy", "-", "--traffic", "-"}, 2, []string{"standard input"}},
		"negative runs":    {[]string{good, "--runs", "-1"}, 2, []string{"--runs -1"}},
		"no picture":       {[]string{good, "--plot", "x.png"}, 2, []string{"ends in .svg"}},
		"bad file":         {[]string{good, bad}, 1, []string{"bad.yaml:2:", "pods", "podz"}},
		"no file":          {[]string{"no-such.yaml"}, 1, []string{"no-such.yaml"}},
		"policy as a run":  {[]string{policy}, 1, []string{"policy.yaml"}},
		"scenario as":      {[]string{"--policy", policy, "--traffic", good}, 1, []string{"good.yaml", "rate", "is not for a file of traffic"}},
		"bad assignment":   {[]string{good, "--set", "pods"}, 1, []string{"--set", "field=value"}},
		"unknown field":    {[]string{good, "--set", "rate.limt=5"}, 1, []string{"rate.limt", "limit"}},
		"nothing to check": {[]string{good, "--check"}, 1, []string{"no file has a reference"}},
		"traffic to check": {[]string{"--policy", policy, "--traffic", traffic, "--check"}, 1, []string{"has no reference"}},
		"errors of a policy": {[]string{"--policy", write(t, "p.yaml", strings.Replace(goodPolicy, "limit: 100,", "limit: 0,", 1)), "--traffic", traffic}, 1,
			[]string{"p.yaml", "spec.limits[0].rates[0].limit"}},
	} {
		e := &engine{}
		o := e.simulate(t, "", tt.args...)
		if o.code != tt.code || len(e.asked) > 0 || o.out != "" {
			t.Errorf("%s: exit code %d, want %d; %d were run (%s%s)", name, o.code, tt.code, len(e.asked), o.out, o.err)
		}
		for _, w := range tt.want {
			if !strings.Contains(o.err, w) {
				t.Errorf("%s: %q is missing in\n%s", name, w, o.err)
			}
		}
	}
}

func TestSimulatePrintsATableAndPlots(t *testing.T) {
	e := &engine{over: 5}
	o := e.simulate(t, goodScenario, "-")
	if o.code != 0 || o.err != "" {
		t.Fatal(o.err)
	}
	for _, w := range []string{"scenario", "front", "10/1s", "66.7", "5.0", "window content, % of the limit", "2 pods, seed 1"} {
		if !strings.Contains(o.out, w) {
			t.Errorf("%q is missing in\n%s", w, o.out)
		}
	}
	file := write(t, "s.yaml", goodScenario)
	if o = e.simulate(t, "", file, file, file, file, file); strings.Contains(o.out, "window content") || strings.Count(o.out, "front") != 5 {
		t.Errorf("five scenarios: %s", o.out)
	}
}

func TestSimulateJSONIsALineAScenario(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a", "b"} {
		if err := os.WriteFile(filepath.Join(dir, name+".yaml"), []byte(strings.Replace(goodScenario, "front", name, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	e := &engine{over: 5}
	o := e.simulate(t, "", dir, "--json", "--seed", "7", "--runs", "3", "--set", "pods=5", "--set", "traffic[0].batch=4")
	lines := strings.Split(strings.TrimSpace(o.out), "\n")
	if o.code != 0 || o.err != "" || len(lines) != 2 {
		t.Fatalf("%+v", o)
	}
	for i, line := range lines {
		var got struct {
			Name string
			Over float64 `json:"over_percent"`
			Seed uint64
		}
		if err := json.Unmarshal([]byte(line), &got); err != nil || got.Name != string(rune('a'+i)) || got.Over != 5 || got.Seed != 7 {
			t.Errorf("%s: %+v, %v", line, got, err)
		}
	}
	if s := e.asked[1]; s.Pods != 5 || s.Traffic[0].Batch != 4 || e.with[1].Seed != 7 || e.with[1].Runs != 3 {
		t.Errorf("ran %+v with %+v", s, e.with[1])
	}
}

func TestSimulateAPolicyWithTraffic(t *testing.T) {
	e := &engine{}
	policy := write(t, "policy.yaml", goodPolicy)
	o := e.simulate(t, goodTraffic, "--policy", policy, "--traffic", "-", "--set", "pods=4")
	if o.code != 0 || len(e.asked) != 1 {
		t.Fatal(o.err)
	}
	if s := e.asked[0]; s.Pods != 4 || s.SteadyFrom != 2*time.Second || s.Policy.Limits[0].Name != "each" || s.Traffic[0].Client != "acme" {
		t.Errorf("ran %+v", s)
	}
	if !strings.Contains(o.out, "each 10/1s") || !strings.Contains(o.out, "limit each, 10/1s, 4 pods") {
		t.Errorf("printed\n%s", o.out)
	}
}

func TestSimulateChecksReferences(t *testing.T) {
	file := write(t, "s.yaml", goodScenario+"reference: {overPercent: 4, overSd: 1}\n")
	for name, tt := range map[string]struct {
		over float64
		args []string
		code int
		out  string // in what is printed
		err  string
	}{
		"held":            {6, nil, 0, "held", ""},
		"held, checked":   {6, []string{"--check"}, 0, "held", ""},
		"missed":          {6.1, nil, 0, "MISSED", ""},
		"missed, checked": {6.1, []string{"--check"}, 1, "over_percent is 6.1, more than 6", "1 references are missed"},
		"as JSON":         {6.1, []string{"--check", "--json"}, 1, `"over_percent":6.1`, "front: reference missed: over_percent is 6.1"},
	} {
		o := (&engine{over: tt.over}).simulate(t, "", append([]string{file}, tt.args...)...)
		if o.code != tt.code || !strings.Contains(o.out, tt.out) || !strings.Contains(o.err, tt.err) || tt.err == "" && o.err != "" {
			t.Errorf("%s: %+v", name, o)
		}
	}
}

func TestSimulateWritesAPictureOfEach(t *testing.T) {
	twoLimits := strings.Replace(goodScenario, "rate: {limit: 10, window: 1s}",
		"policy: {limits: [{name: a, rates: [{limit: 10, window: 1s}, {limit: 50, window: 10s}]}, {name: b, rates: [{limit: 5, window: 1s}]}]}", 1)
	for name, tt := range map[string]struct {
		scenarios []string
		want      []string
	}{
		"one":     {[]string{goodScenario}, []string{"p.svg"}},
		"several": {[]string{goodScenario, strings.Replace(goodScenario, "front", "other", 1)}, []string{"p-front.svg", "p-other.svg"}},
		"limits":  {[]string{twoLimits}, []string{"p-front-a-2.svg", "p-front-a.svg", "p-front-b.svg"}},
		"of one name, and one that is a path": {
			[]string{goodScenario, goodScenario, strings.Replace(goodScenario, "front", "../../è", 1)},
			[]string{"p-..-..--.svg", "p-front-2.svg", "p-front.svg"},
		},
	} {
		dir := t.TempDir()
		args := []string{"--plot", filepath.Join(dir, "p.svg")}
		for _, s := range tt.scenarios {
			args = append(args, write(t, "s.yaml", s))
		}
		if o := (&engine{}).simulate(t, "", args...); o.code != 0 {
			t.Fatalf("%s: %s", name, o.err)
		}
		var got []string
		files, _ := filepath.Glob(filepath.Join(dir, "*"))
		for _, f := range files {
			got = append(got, filepath.Base(f))
			if text, err := os.ReadFile(f); err != nil || !bytes.HasPrefix(text, []byte("<svg")) {
				t.Errorf("%s: %.20s, %v", f, text, err)
			}
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: wrote %q, want %q", name, got, tt.want)
		}
	}
	o := (&engine{}).simulate(t, goodScenario, "-", "--plot", filepath.Join(t.TempDir(), "no", "such", "p.svg"))
	if o.code != 1 || !strings.Contains(o.err, "write the picture") {
		t.Errorf("into no directory: %+v", o)
	}
}

func TestSimulateSaysWhyARunEnded(t *testing.T) {
	if o := (&engine{err: context.Canceled}).simulate(t, goodScenario, "-"); o.code != 1 || !strings.Contains(o.err, "interrupted") || o.out != "" {
		t.Errorf("interrupted: %+v", o)
	}
	if o := (&engine{err: errors.New("the policy names no target")}).simulate(t, goodScenario, "-"); o.code != 1 || !strings.Contains(o.err, "front: the policy names no target") {
		t.Errorf("failed: %+v", o)
	}
}

// Ctrl-C ends the real engine in the middle of a run that would take hours.
func TestSimulateEndsWhenAsked(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	long := strings.NewReplacer("duration: 2s", "duration: 240h", "value: 30", "value: 1000").Replace(goodScenario)
	r := cli.Root("weir", "", "")
	r.AddCommand(simulateCommand(func(ctx context.Context, s *scenario.Scenario, o simulate.Options) ([]*measure.Run, error) {
		cancel()
		return simulate.RunAll(ctx, s, o)
	}))
	var errs bytes.Buffer
	code := cli.Execute(ctx, r, []string{"simulate", "-"}, cli.Streams{In: strings.NewReader(long), Out: &errs, Err: &errs})
	if code != 1 || !strings.Contains(errs.String(), "interrupted") {
		t.Errorf("exit code %d: %s", code, errs.String())
	}
}
