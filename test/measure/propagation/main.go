// Command propagation measures how long a unit takes from its admission on one pod until every pod
// holds a decision that includes it, on real Envoys, Kafka and Redis under a threefold load.
//
//	go run ./test/measure/propagation            a table
//	go run ./test/measure/propagation -json      one JSON object
//
// It reads what the pods read. A report says how old its oldest and newest unit were when it was
// handed over; the broker stamps it; the first header whose watermark covers it is timed when it
// arrives here, as it does at a pod. It also says how full the fullest second was.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/weirproxy/weir/test/load"
	"github.com/weirproxy/weir/test/parts"
	"github.com/weirproxy/weir/test/world"
)

// result of one run; times in ms.
type result struct {
	Pods        int     `json:"pods"`
	Limit       int     `json:"limit"`
	Seconds     int     `json:"seconds"`
	Reports     int     `json:"reports"`
	OldestP50   float64 `json:"oldest_unit_ms_p50"`
	OldestP99   float64 `json:"oldest_unit_ms_p99"`
	NewestP50   float64 `json:"newest_unit_ms_p50"`
	NewestP99   float64 `json:"newest_unit_ms_p99"`
	WorstWindow float64 `json:"worst_window_of_limit"`
	Mean        float64 `json:"mean_of_limit"`
	NotAnswered int     `json:"not_answered"`
}

const limit = 300

func main() {
	asJSON := flag.Bool("json", false, "print one JSON object")
	seconds := flag.Int("seconds", 20, "length of the load")
	flag.Parse()
	var r result
	err := parts.Run(func(t parts.T) { r = run(t, *seconds) })
	if err != nil {
		fmt.Fprintln(os.Stderr, "propagation:", err)
		os.Exit(1)
	}
	if *asJSON {
		_ = json.NewEncoder(os.Stdout).Encode(r)
		return
	}
	fmt.Printf(`| what | measured |
|---|---|
| pods, limit, offered | %d, %d/s, %d/s split 60/30/10 |
| reports seen | %d |
| oldest unit of a report → header at every pod, p50 / p99 | %.0f / %.0f ms |
| newest unit of a report → header at every pod, p50 / p99 | %.0f / %.0f ms |
| fullest second after the first two | %.3f of the limit |
| mean after the first two seconds | %.3f of the limit |
| requests without an answer | %d |
`, r.Pods, r.Limit, 3*r.Limit, r.Reports, r.OldestP50, r.OldestP99, r.NewestP50, r.NewestP99, r.WorstWindow, r.Mean, r.NotAnswered)
}

func run(t parts.T, seconds int) result {
	w := world.Settled(t, 3, 1, world.Policy(world.EachClient(limit, "")))
	watch := newWatch(w)
	length := time.Duration(seconds) * time.Second
	tally := w.Start(length, world.Uneven("acme", 3*limit)...).Wait().Total()
	r := result{Pods: len(w.Pods), Limit: limit, Seconds: seconds, NotAnswered: tally.Errors + tally.Unsent}
	times := world.After(tally.SentAt, world.Steady)
	r.WorstWindow = float64(load.MaxWindow(times, 1000)) / limit
	r.Mean = float64(len(times)) / (length - world.Steady).Seconds() / limit
	watch.result(&r)
	return r
}
