package scenario

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"

	"go.yaml.in/yaml/v3"
)

// Marshal writes the scenario as a file. Parse reads it to an equal value, if it is one that Parse or Random made.
func (s *Scenario) Marshal() ([]byte, error) {
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	e.CompactSeqIndent()
	f, usual := s.file(), defaults()
	node := encode(reflect.ValueOf(f), reflect.ValueOf(usual))
	node.Style = 0
	if err := e.Encode(node); err != nil {
		return nil, fmt.Errorf("write scenario %s: %w", s.Name, err)
	}
	if err := e.Close(); err != nil {
		return nil, fmt.Errorf("write scenario %s: %w", s.Name, err)
	}
	return b.Bytes(), nil
}

// file is the scenario as it is written: without what Parse puts in place by itself.
func (s *Scenario) file() file {
	f := file{
		Name: s.Name, Title: s.Title, Pods: s.Pods,
		Duration: s.Duration, SteadyFrom: s.SteadyFrom, Runs: s.Runs, Seed: s.Seed,
		Arrivals: s.Arrivals, Timing: s.Timing, Faults: s.Faults, Reference: s.Reference,
		Network: network{s.Network.Uplink, s.Network.Downlink, s.Network.Ack, tail{s.Network.TailProbability, s.Network.TailMax}},
	}
	if s.Single {
		f.Rate = &s.Policy.Limits[0].Rates[0]
	} else {
		p := *s.Policy
		if slices.Equal(p.TargetRefs, targetRefs()) {
			p.TargetRefs = nil
		}
		f.Policy = &p
	}
	for i := range s.Traffic {
		f.Traffic = append(f.Traffic, s.Traffic[i].written(s.MaxPods()))
	}
	return f
}

// written is the source without what Parse puts in place by itself.
func (s *Source) written(pods int) Source {
	out := *s
	if slices.Equal(s.Weights, Zipf(len(s.Pods), s.Skew)) {
		out.Weights = nil
	} else {
		out.Skew = 0
	}
	if slices.Equal(s.Pods, upTo(pods)) {
		out.Pods = nil
	}
	if s.Batch == 1 {
		out.Batch = 0
	}
	return out
}
