// Command handover measures how long a usage partition is without its owner's headers when an
// aggregator leaves, restarts or is killed: from the last header of the old owner to the first of
// the new one, as the broker stamps them, under a load of synthetic reports.
//
//	go run ./test/measure/handover            a table
//	go run ./test/measure/handover -json      one JSON object
//
// After each drill the totals in Redis are compared with what the reports counted.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/weirproxy/weir/test/parts"
	"github.com/weirproxy/weir/test/world"
)

// drill is one way for an owner to go; it returns when the owner is gone or back.
type drill struct {
	name     string
	handover string // setting of the aggregators
	do       func(w *world.World)
}

var drills = []drill{
	{"SIGTERM, handover: Leave", "Leave", func(w *world.World) { _ = w.Owners[0].Process.Stop() }},
	{"SIGTERM and start again at once, handover: Stay", "Stay", func(w *world.World) {
		_ = w.Owners[0].Process.Stop()
		w.StartOwner(w.Owners[0])
	}},
	{"SIGKILL", "Leave", func(w *world.World) { w.Owners[0].Process.Kill() }},
	{"SIGKILL and start again at once", "Leave", func(w *world.World) {
		w.Owners[0].Process.Kill()
		w.StartOwner(w.Owners[0])
	}},
	{"another aggregator joins", "Leave", func(w *world.World) { w.AddOwner("--handover", "Leave") }},
}

// result of one drill; gaps in ms, of the partitions whose owner changed.
type result struct {
	Drill    string  `json:"drill"`
	Updates  float64 `json:"updates_per_second"`
	Moved    int     `json:"partitions_moved"`
	GapMean  float64 `json:"gap_ms_mean"`
	GapWorst float64 `json:"gap_ms_worst"`
	Missing  int64   `json:"units_missing"`
}

func main() {
	asJSON := flag.Bool("json", false, "print JSON lines")
	updates := flag.Int("updates", 20000, "counter updates/s in all")
	flag.Parse()
	if !*asJSON {
		fmt.Println("| drill | updates/s | partitions moved | gap, mean | gap, worst | units missing in Redis |\n|---|---|---|---|---|---|")
	}
	for _, d := range drills {
		var r result
		err := parts.Run(func(t parts.T) { r = run(t, d, *updates) })
		if err != nil {
			fmt.Fprintln(os.Stderr, "handover:", err)
			os.Exit(1)
		}
		if *asJSON {
			_ = json.NewEncoder(os.Stdout).Encode(r)
			continue
		}
		fmt.Printf("| %s | %.0f | %d | %.0f ms | %.0f ms | %d |\n", r.Drill, r.Updates, r.Moved, r.GapMean, r.GapWorst, r.Missing)
	}
}

const (
	warm   = 5 * time.Second
	settle = 12 * time.Second // beyond a session's time-out
)

func run(t parts.T, d drill, updates int) result {
	w := world.New(t)
	w.Write("p0.yaml", everyTarget())
	w.Kafka = parts.StartKafka(t, parts.KafkaOpts{})
	w.Redis = parts.StartRedis(t, parts.RedisOpts{})
	w.EnsureTopics()
	w.AddOwner("--handover", d.handover)
	w.AddOwner("--handover", d.handover)
	f := newFleet(w, updates)
	time.Sleep(warm)
	f.watch.mark()
	start, before := time.Now(), f.updates.Load()
	d.do(w)
	time.Sleep(settle)
	rate := float64(f.updates.Load()-before) / time.Since(start).Seconds()
	r := result{Drill: d.name, Updates: rate}
	r.Moved, r.GapMean, r.GapWorst = f.watch.gaps()
	f.stop()
	r.Missing = f.missing(w)
	return r
}
