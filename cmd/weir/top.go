package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirproxy/weir/aggregator/partition"
	"github.com/weirproxy/weir/internal/admin"
	"github.com/weirproxy/weir/internal/cli"
)

const (
	defaultTopEvery = 2 * time.Second
	leastTopEvery   = 200 * time.Millisecond
)

func topCommand() *cobra.Command {
	var t topper
	var addresses []string
	cmd := &cobra.Command{
		Use:   "top [--aggregator ADDR]… [--limit N] [--counters K] [--watch]",
		Short: "Show limits by how close to and how far over their amount their counters are",
		Long: `Ask aggregators, by their admin address, for the limits whose counters they own, and show those first that are
nearest to their amount or furthest over it. Name each aggregator: the counters of one limit may be at several. /debug
answers on loopback only, so run it beside them, or through kubectl port-forward.

  counters    live
  fullest     the counter that holds the most of its amount; secrets show as the beginning of their hash
  now         what the owner knows that it holds, of its amount
  over        what the fullest window of the last minute held beyond the amount, once late reports were in
  offered/s   units asked of all counters of the limit
  refused     the part of it beyond what their rates let through

The fields of --json are in docs/reference/top.md.`,
		Args: cobra.NoArgs,
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringSliceVar(&addresses, "aggregator", []string{"127.0.0.1:9193"}, "admin `ADDRESS` of an aggregator: host:port or unix:///path; may be repeated")
	f.IntVar(&t.limits, "limit", partition.DefaultTopLimits, "how many limits to show, at most 100")
	f.IntVar(&t.counters, "counters", 1, "how many counters to show of each, at most 5")
	f.BoolVar(&t.json, "json", false, "print JSON: one object, or with --watch one a line")
	f.BoolVarP(&t.watch, "watch", "w", false, "show again and again until Ctrl-C: in place on a terminal")
	f.DurationVar(&t.every, "every", defaultTopEvery, "with --watch, how often")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := t.prepare(addresses); err != nil {
			return cli.Usage(err)
		}
		t.screen = newScreen(cmd.OutOrStdout())
		if t.watch {
			return t.watching(cmd.Context())
		}
		a := t.ask(cmd.Context())
		if err := t.show(a); err != nil {
			return err
		}
		return a.failed()
	}
	return cmd
}

// topper asks aggregators and shows what they answer.
type topper struct {
	limits, counters int
	json, watch      bool
	every            time.Duration
	aggregators      []aggregator
	screen           *screen
}

// aggregator is one to ask.
type aggregator struct {
	address string
	client  *admin.Client
}

// topAnswer is what all aggregators together say.
type topAnswer struct {
	// Partitions of the installation, and those that no aggregator which answered decides.
	Partitions int32   `json:"partitions"`
	Missing    []int32 `json:"missing,omitempty"`
	// Limits, and how many more there are.
	Limits  []partition.LimitView `json:"limits"`
	LeftOut int                   `json:"leftOut"`
	// Errors of aggregators that did not answer.
	Errors []string `json:"errors,omitempty"`

	errs     []error
	answered int
}

func (t *topper) prepare(addresses []string) error {
	if t.limits < 1 || t.limits > partition.MaxTopLimits {
		return fmt.Errorf("--limit %d: want a number from 1 to %d", t.limits, partition.MaxTopLimits)
	}
	if t.counters < 1 || t.counters > partition.MaxTopCounters {
		return fmt.Errorf("--counters %d: want a number from 1 to %d", t.counters, partition.MaxTopCounters)
	}
	if t.every < leastTopEvery {
		return fmt.Errorf("--every %v: want %v or longer", t.every, leastTopEvery)
	}
	for _, a := range addresses {
		c, err := admin.NewClient(a)
		if err != nil {
			return fmt.Errorf("--aggregator: %w", err)
		}
		t.aggregators = append(t.aggregators, aggregator{a, c})
	}
	if len(t.aggregators) == 0 {
		return errors.New("--aggregator: name one")
	}
	return nil
}

// ask asks all aggregators at the same time. Each gives all it may: a limit that is far from its amount at one may be
// near at another.
func (t *topper) ask(ctx context.Context) *topAnswer {
	path := fmt.Sprintf("%s?limits=%d&counters=%d", partition.TopPath, partition.MaxTopLimits, t.counters)
	tops, errs := make([]partition.Top, len(t.aggregators)), make([]error, len(t.aggregators))
	var asking sync.WaitGroup
	for i, a := range t.aggregators {
		asking.Go(func() { tops[i], errs[i] = a.top(ctx, path) })
	}
	asking.Wait()
	return t.together(tops, errs)
}

func (a aggregator) top(ctx context.Context, path string) (top partition.Top, err error) {
	status, body, err := a.client.Get(ctx, path)
	if err != nil {
		return top, err
	}
	if status != http.StatusOK {
		return top, fmt.Errorf("%s answered %d: %s", a.address, status, said(status, body))
	}
	if err := json.Unmarshal(body, &top); err != nil {
		return top, fmt.Errorf("%s: the answer is not the JSON expected; is it an aggregator, and of this version? %w", a.address, err)
	}
	return top, nil
}

// said is what an answer that is none says.
func said(status int, body []byte) string {
	if status == http.StatusNotFound {
		return "it knows nothing of limits; is it an aggregator, and of this version?"
	}
	var problem struct{ Error string }
	if json.Unmarshal(body, &problem) == nil && problem.Error != "" {
		return problem.Error
	}
	return strings.TrimSpace(string(body))
}

// together makes one answer of those of all aggregators.
func (t *topper) together(tops []partition.Top, errs []error) *topAnswer {
	a := &topAnswer{}
	var views []partition.LimitView
	held := map[int32]bool{}
	left := 0
	for i := range tops {
		if errs[i] != nil {
			a.errs, a.Errors = append(a.errs, errs[i]), append(a.Errors, errs[i].Error())
			continue
		}
		a.answered++
		a.Partitions = max(a.Partitions, tops[i].Partitions)
		for _, p := range tops[i].Held {
			held[p] = true
		}
		views = append(views, tops[i].Limits...)
		left += tops[i].LeftOut
	}
	for p := range a.Partitions {
		if !held[p] {
			a.Missing = append(a.Missing, p)
		}
	}
	a.Limits, a.LeftOut = partition.MergeTop(views, t.limits, t.counters)
	a.LeftOut += left
	return a
}

// failed is what to end with: an aggregator that did not answer makes the answer less than whole.
func (a *topAnswer) failed() error { return errors.Join(a.errs...) }

func (t *topper) show(a *topAnswer) error {
	switch {
	case t.json:
		e := json.NewEncoder(t.screen.out)
		if !t.watch {
			e.SetIndent("", "  ")
		}
		return e.Encode(a)
	case a.answered == 0 && !t.watch:
		return nil
	}
	t.screen.draw(a.lines(t.watch), t.watch)
	return nil
}

// watching shows again and again until ctx ends.
func (t *topper) watching(ctx context.Context) error {
	tick := time.NewTicker(t.every)
	defer tick.Stop()
	for {
		a := t.ask(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err := t.show(a); err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}
