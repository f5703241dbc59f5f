package main

import (
	"context"

	"github.com/weirproxy/weir/internal/simulate"
	"github.com/weirproxy/weir/internal/simulate/measure"
	"github.com/weirproxy/weir/internal/simulate/scenario"
	"github.com/weirproxy/weir/test/designs"
)

// column is weir or another design.
type column struct {
	name  string
	title string // what it is
	run   func(ctx context.Context, s *scenario.Scenario, runs int, seed uint64) ([]*measure.Run, error)
}

func columns() []column {
	out := []column{{"weir", "a record of what is left, shared by each pod from its own reports", weir}}
	for _, k := range designs.Kinds() {
		out = append(out, column{k.Name, k.Title, func(ctx context.Context, s *scenario.Scenario, runs int, seed uint64) ([]*measure.Run, error) {
			return designs.RunAll(ctx, s, k, runs, seed)
		}})
	}
	return out
}

func weir(ctx context.Context, s *scenario.Scenario, runs int, seed uint64) ([]*measure.Run, error) {
	return simulate.RunAll(ctx, s, simulate.Options{Runs: runs, Seed: seed})
}
