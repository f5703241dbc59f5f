// Command compare runs weir and other designs on the same scenarios, by the same measures: the tables and pictures of
// docs/accuracy.md.
//
//	go run ./test/designs/compare                                 the tables, on the scenarios of test/scenarios
//	go run ./test/designs/compare -runs 3 FILE...                 on others, each run that often
//	go run ./test/designs/compare -images docs/images             and the pictures of the scenarios that -pictures names
//
// Run it at the root of the repository. A figure is the mean over the runs; a picture shows the first one.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"

	"github.com/weirproxy/weir/internal/simulate/scenario"
)

const (
	compared = "S1,S2,S3,S4,S5,S6,S6b,S7,S9,S10b,S11,S12,O2,O3,W1"
	pictured = "S1,S5,S7,O3"
)

type options struct {
	runs     int
	seed     uint64
	images   string
	pictures []string
	files    []string
}

func main() {
	var o options
	flag.IntVar(&o.runs, "runs", 0, "runs of each scenario; 0: as its file says")
	flag.Uint64Var(&o.seed, "seed", 0, "the first run's seed; 0: as the file says")
	flag.StringVar(&o.images, "images", "", "directory for the pictures, accuracy-NAME.svg")
	pictures := flag.String("pictures", pictured, "scenarios that get a picture")
	flag.Parse()
	o.pictures, o.files = strings.Split(*pictures, ","), flag.Args()
	if len(o.files) == 0 {
		for _, name := range strings.Split(compared, ",") {
			o.files = append(o.files, filepath.Join("test", "scenarios", name+".yaml"))
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, &o); err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o *options) error {
	var rows []row
	for _, file := range o.files {
		s, err := read(file)
		if err != nil {
			return err
		}
		r, err := compare(ctx, s, o)
		if err != nil {
			return err
		}
		rows = append(rows, r)
		fmt.Fprintf(os.Stderr, "%s: %d runs\n", s.Name, len(r.runs[0]))
		if err := picture(&r, o); err != nil {
			return err
		}
	}
	return writeTables(os.Stdout, rows)
}

func read(file string) (*scenario.Scenario, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("%w (run at the root of the repository, or name files)", err)
	}
	return scenario.Parse(file, data)
}

// compare runs s on every column.
func compare(ctx context.Context, s *scenario.Scenario, o *options) (row, error) {
	runs, seed := s.Runs, s.Seed
	if o.runs > 0 {
		runs = o.runs
	}
	if o.seed > 0 {
		seed = o.seed
	}
	r := row{scenario: s}
	for _, c := range columns() {
		done, err := c.run(ctx, s, runs, seed)
		if err != nil {
			return row{}, fmt.Errorf("%s: %w", c.name, err)
		}
		for _, later := range done[1:] {
			later.Rates[0].Series = nil // pictures show the first
		}
		r.runs = append(r.runs, done)
	}
	return r, nil
}
