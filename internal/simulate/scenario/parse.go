package scenario

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/weirproxy/weir/api/v1alpha1"
	"github.com/weirproxy/weir/internal/policy"
)

// Bounds of a scenario.
const (
	maxPodCount = 10_000
	maxRuns     = 10_000
	maxDuration = 400 * 24 * time.Hour
	maxSources  = 1000
	maxFaults   = 1000
	maxRequests = 1e9 // a run
)

// Parse reads and checks a scenario's file; name is what errors call it, and the scenario where the file gives it no
// name. The error is a policy.Errors with everything that is wrong.
func Parse(name string, data []byte) (*Scenario, error) { return ParseWith(name, data, nil) }

// ParseWith is Parse with some fields set to other values first, in the order given.
func ParseWith(name string, data []byte, sets []Assignment) (*Scenario, error) {
	f := defaults()
	c, err := decode(name, data, sets, &f)
	if err != nil {
		return nil, err
	}
	c.quota(&f)
	c.required("steadyFrom", "say from when on under-admission counts, such as 2s")
	if err := c.check(&f); err != nil {
		return nil, err
	}
	return f.scenario(), nil
}

// FromPolicy makes a scenario of a file that holds one QuotaPolicy, as `weir apply` takes it, and one of traffic: a
// scenario's file without rate, policy and reference, whose steadyFrom is a quarter of the duration where it says
// none. sets are for the latter.
func FromPolicy(policyName string, policyData []byte, trafficName string, traffic []byte, sets ...Assignment) (*Scenario, error) {
	docs, policyErr := policy.Parse(policyName, policyData)
	if policyErr == nil && len(docs) != 1 {
		policyErr = policy.Errors{{File: policyName, Reason: fmt.Sprintf("has %d policies", len(docs)), Remedy: "give one: a run has one quota"}}
	}
	f := defaults()
	c, err := decode(trafficName, traffic, sets, &f)
	if err != nil {
		return nil, joined(policyErr, err)
	}
	for _, field := range []string{"rate", "policy", "reference"} {
		if c.has(field) {
			c.fail(field, "is not for a file of traffic", "remove it: the quota is that of "+policyName)
		}
	}
	f.Rate, f.Policy = nil, nil
	if !c.has("steadyFrom") {
		f.SteadyFrom = f.Duration / 4
	}
	if policyErr == nil {
		f.Policy = &docs[0].Spec
		c.failure(f.Policy, &f.Timing)
		c.valid(f.Policy, "policy")
	}
	if err := joined(policyErr, c.check(&f)); err != nil {
		return nil, err
	}
	return f.scenario(), nil
}

// joined is the errors of two files; nil if there is none.
func joined(errs ...error) error {
	var all policy.Errors
	for _, err := range errs {
		var list policy.Errors
		if errors.As(err, &list) {
			all = append(all, list...)
		}
	}
	if len(all) == 0 {
		return nil
	}
	return all
}

// decode reads a file's fields; nothing else is to be said of one that is no YAML, or whose assignments fit nowhere.
func decode(name string, data []byte, sets []Assignment, f *file) (*checker, error) {
	root, bad := parseNode(name, data)
	if bad != nil {
		return nil, policy.Errors{bad}
	}
	d := &decoder{checker: &checker{file: name, where: make(map[string]position)}, assigned: make(map[*yaml.Node]string)}
	for _, a := range sets {
		if bad := a.apply(root, d.assigned); bad != nil {
			bad.File = name + " with " + a.String()
			d.errs = append(d.errs, bad)
		}
	}
	if len(d.errs) > 0 {
		return nil, d.errs
	}
	d.where[""] = position{line: root.Line, col: root.Column}
	d.object("", root, reflect.ValueOf(f).Elem())
	return d.checker, nil
}

// check checks what was read; f.Policy is nil where it could not be.
func (c *checker) check(f *file) error {
	c.names(f)
	c.run(f)
	c.network(&f.Network)
	c.timing(&f.Timing)
	c.faults(f)
	c.traffic(f)
	c.reference(f.Reference)
	return c.err()
}

// scenario is what a file that was checked says.
func (f *file) scenario() *Scenario {
	for i := range f.Traffic {
		fillSource(&f.Traffic[i], maxPods(f.Pods, f.Faults), f.Policy)
	}
	for i := range f.Faults {
		fillFault(&f.Faults[i], f.Policy)
	}
	return &Scenario{
		Name: f.Name, Title: f.Title, Pods: f.Pods, Policy: f.Policy, Single: f.Rate != nil,
		Duration: f.Duration, SteadyFrom: f.SteadyFrom, Runs: f.Runs, Seed: f.Seed,
		Traffic: f.Traffic, Arrivals: f.Arrivals, Timing: f.Timing, Faults: f.Faults, Reference: f.Reference,
		Network: Network{
			Uplink: f.Network.Uplink, Downlink: f.Network.Downlink, Ack: f.Network.Ack,
			TailProbability: f.Network.Tail.Probability, TailMax: f.Network.Tail.Max,
		},
	}
}

func (c *checker) names(f *file) {
	if f.Name == "" {
		base := filepath.Base(c.file)
		f.Name = cmp.Or(strings.TrimSuffix(base, filepath.Ext(base)), targetName)
	}
	c.text("name", f.Name, 100)
	c.text("title", f.Title, 300)
}

func (c *checker) run(f *file) {
	if c.required("pods", "say how many sidecars the target has") {
		within(c, "pods", f.Pods, 1, maxPodCount)
	}
	if c.required("duration", "give the virtual time of a run, such as 20s") {
		c.span("duration", f.Duration, time.Millisecond, maxDuration)
	}
	if f.SteadyFrom < 0 || f.SteadyFrom >= f.Duration && f.Duration > 0 {
		c.fail("steadyFrom", "is "+short(f.SteadyFrom), "want 0s or more, and less than duration")
	}
	within(c, "runs", f.Runs, 1, maxRuns)
	oneOf(c, "arrivals", f.Arrivals, Poisson, Uniform)
}

func (c *checker) reference(r *Reference) {
	if r == nil {
		return
	}
	for _, sd := range []struct {
		field, of   string
		value, mean *float64
	}{{"overSd", "overPercent", r.OverSd, r.OverPercent}, {"underSd", "underPercent", r.UnderSd, r.UnderPercent}} {
		switch field := "reference." + sd.field; {
		case sd.value == nil:
		case sd.mean == nil:
			c.fail(field, "is given without "+sd.of, "give both, or remove it")
		case *sd.value < 0:
			c.fail(field, fmt.Sprintf("is %v", *sd.value), "want 0 or more")
		}
	}
}

// fillFault puts in place what a fault may leave out.
func fillFault(f *Fault, p *v1alpha1.QuotaPolicySpec) {
	if f.Kind == LimitChange && f.LimitName == "" {
		f.LimitName = p.Limits[0].Name
	}
	if f.Kind == OwnerMoves && f.Old == "" {
		f.Old = OldLeaves
	}
}
