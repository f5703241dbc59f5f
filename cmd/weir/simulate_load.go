package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/weirproxy/weir/internal/simulate/scenario"
)

// load reads every scenario. All errors of all files are returned together.
func (o *simulation) load(cmd *cobra.Command) ([]*scenario.Scenario, error) {
	sets, err := assignments(o.sets)
	if err != nil {
		return nil, err
	}
	if o.policy != "" {
		return o.loadPolicy(cmd, sets)
	}
	files, err := expand(o.files)
	errs := []error{err}
	var scenarios []*scenario.Scenario
	referenced := false
	for _, file := range files {
		data, err := readScenario(cmd, file)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		s, err := scenario.ParseWith(file, data, sets)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		referenced = referenced || s.Reference != nil
		scenarios = append(scenarios, s)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if o.check && !referenced {
		return nil, errors.New("--check: no file has a reference to hold; give one, such as reference: {overPercent: 10}")
	}
	return scenarios, nil
}

func (o *simulation) loadPolicy(cmd *cobra.Command, sets []scenario.Assignment) ([]*scenario.Scenario, error) {
	if o.check {
		return nil, errors.New("--check: a file of traffic has no reference to hold; write a scenario")
	}
	policy, policyErr := readScenario(cmd, o.policy)
	traffic, trafficErr := readScenario(cmd, o.traffic)
	if err := errors.Join(policyErr, trafficErr); err != nil {
		return nil, err
	}
	s, err := scenario.FromPolicy(o.policy, policy, o.traffic, traffic, sets...)
	if err != nil {
		return nil, err
	}
	return []*scenario.Scenario{s}, nil
}

func assignments(texts []string) ([]scenario.Assignment, error) {
	var sets []scenario.Assignment
	var errs []error
	for _, text := range texts {
		a, err := scenario.ParseAssignment(text)
		if err != nil {
			errs = append(errs, fmt.Errorf("--set %w", err))
		}
		sets = append(sets, a)
	}
	return sets, errors.Join(errs...)
}

// readScenario reads a file, or standard input for "-", as far as one may be long.
func readScenario(cmd *cobra.Command, file string) ([]byte, error) {
	return readInput(cmd, file, scenario.MaxFile)
}
