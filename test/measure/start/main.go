// Command start measures how long a sidecar takes from its execution until it decides the first check, with 1,000
// policies waiting on a real broker: the real program, asked over its socket from the moment that it listens.
//
//	go run ./test/measure/start                 a table: medians, and the slowest run
//	go run ./test/measure/start -runs 11 -json  JSON lines
//
// It starts without a file of last good policies (the broker alone knows them), with one, and with one while no
// broker answers. A check counts as decided when it is answered at all: before there are policies the sidecar
// answers with an RPC error.
package main

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/weirproxy/weir/test/parts"
	"github.com/weirproxy/weir/test/world"
)

// result of one kind of start, ms since the program was executed. 0: does not happen.
type result struct {
	Start     string  `json:"start"`
	Policies  int     `json:"policies"`
	Runs      int     `json:"runs"`
	Listening float64 `json:"listening_ms"`
	Connected float64 `json:"connected_ms"`
	Applied   float64 `json:"policies_applied_ms"`
	Decided   float64 `json:"first_decision_ms"`
	Slowest   float64 `json:"first_decision_slowest_ms"`
	CPU       float64 `json:"cpu_ms"` // of the sidecar until then, to 10 ms: what a busy machine does not change
}

// start is one kind of it.
type start struct {
	name        string
	keep, alone bool // the last run's state file; no broker
}

var starts = []start{
	{name: "nothing kept"},
	{name: "last good policies kept", keep: true},
	{name: "last good policies kept, no broker", keep: true, alone: true},
}

func main() {
	asJSON := flag.Bool("json", false, "print JSON lines")
	runs := flag.Int("runs", 7, "starts of each kind")
	policies := flag.Int("policies", 1000, "policies waiting, of which one is the pod's")
	flag.Parse()
	var all []result
	err := parts.Run(func(t parts.T) { all = measure(t, max(*runs, 1), max(*policies, 1)) })
	if err != nil {
		fmt.Fprintln(os.Stderr, "start:", err)
		os.Exit(1)
	}
	if *asJSON {
		for _, r := range all {
			_ = json.NewEncoder(os.Stdout).Encode(r)
		}
		return
	}
	fmt.Printf("%d policies, medians of %d starts, ms since execution\n\n| start | listening | Kafka answers | policies applied | first decision | slowest | CPU |\n|---|---|---|---|---|---|---|\n",
		max(*policies, 1), max(*runs, 1))
	for _, r := range all {
		fmt.Printf("| %s | %.0f | %s | %.0f | %.0f | %.0f | %.0f |\n", r.Start, r.Listening, orDash(r.Connected), r.Applied, r.Decided, r.Slowest, r.CPU)
	}
}

func orDash(ms float64) string {
	if ms == 0 {
		return "–"
	}
	return fmt.Sprintf("%.0f", ms)
}

func measure(t parts.T, runs, policies int) []result {
	w := world.New(t)
	w.Kafka = parts.StartKafka(t, parts.KafkaOpts{})
	w.EnsureTopics()
	w.Must(publish(w, policies))
	out := make([]result, 0, len(starts))
	for _, s := range starts {
		out = append(out, median(s, policies, repeat(w, s, runs)))
	}
	return out
}

// repeat starts the sidecar so often, each time to the first decision and to its end.
func repeat(w *world.World, s start, runs int) []moments {
	seen := make([]moments, 0, runs)
	p := newPod(w, s)
	for i := -1; i < runs; i++ {
		if !s.keep {
			p.forget()
		}
		m := p.start(s.alone && i >= 0) // the first start warms caches, and leaves the file
		if i >= 0 {
			seen = append(seen, m)
		}
	}
	return seen
}

func median(s start, policies int, seen []moments) result {
	at := func(of func(moments) time.Duration, k int) float64 {
		sorted := slices.SortedFunc(slices.Values(seen), func(a, b moments) int { return cmp.Compare(of(a), of(b)) })
		return float64(of(sorted[k])) / float64(time.Millisecond)
	}
	decided := func(m moments) time.Duration { return m.decided }
	mid := len(seen) / 2
	return result{
		Start: s.name, Policies: policies, Runs: len(seen),
		Listening: at(func(m moments) time.Duration { return m.listening }, mid),
		Connected: at(func(m moments) time.Duration { return m.connected }, mid),
		Applied:   at(func(m moments) time.Duration { return m.applied }, mid),
		Decided:   at(decided, mid), Slowest: at(decided, len(seen)-1),
		CPU: at(func(m moments) time.Duration { return m.cpu }, mid),
	}
}
