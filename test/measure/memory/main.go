// Command memory measures what a sidecar holds resident while it has many live counters: the real
// program, fed over gRPC by distinct clients, with an aggregator, Kafka and Redis beside it.
//
//	go run ./test/measure/memory                         a table, at 10,000 clients
//	go run ./test/measure/memory -clients 50000 -json    one JSON object
//	go run ./test/measure/memory -profile heap.pb.gz     with the heap's profile at the end
//
// Each client asks several times, in turn, so that every counter is reported, acknowledged, included and
// asked again.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/weirproxy/weir/internal/quota"
	"github.com/weirproxy/weir/test/load"
	"github.com/weirproxy/weir/test/parts"
	"github.com/weirproxy/weir/test/world"
)

// result of one run. Resident memory in bytes.
type result struct {
	Clients  int   `json:"clients"`
	Counters int   `json:"counters"` // live, as the sidecar says
	Idle     int64 `json:"idle_bytes"`
	Busy     int64 `json:"busy_bytes"` // the most that was seen under the load
	File     int64 `json:"file_bytes"` // of it the program's file: clean pages, which pods of a node share
	Heap     int64 `json:"heap_bytes"` // in use at the end
	Cells    int64 `json:"cell_bytes"` // outside of the heap

	CPU         float64 `json:"cpu_us_per_check"`
	Collections int     `json:"collections"`
	Refused     int     `json:"refused"`
	Errors      int     `json:"errors"`
}

const (
	perSecond = 2000
	rounds    = 3 // how often each client asks
)

func main() {
	asJSON := flag.Bool("json", false, "print one JSON object")
	clients := flag.Int("clients", 10_000, "distinct clients")
	profile := flag.String("profile", "", "file for the sidecar's heap profile")
	flag.Parse()
	var r result
	err := parts.Run(func(t parts.T) { r = run(t, *clients, *profile) })
	if err != nil {
		fmt.Fprintln(os.Stderr, "memory:", err)
		os.Exit(1)
	}
	if *asJSON {
		_ = json.NewEncoder(os.Stdout).Encode(r)
		return
	}
	const mb = 1e6
	fmt.Printf(`| what | measured |
|---|---|
| resident, no counter yet | %.1f MB |
| resident with %d live counters under %d checks/s, the most | %.1f MB |
| of it the program's file, which all pods of a node share | %.1f MB |
| of it heap in use at the end | %.1f MB |
| of it cells | %.1f MB |
| CPU a check, collections meanwhile | %.0f µs, %d |
| checks refused, without an answer | %d, %d |
`, float64(r.Idle)/mb, r.Counters, perSecond, float64(r.Busy)/mb, float64(r.File)/mb, float64(r.Heap)/mb, float64(r.Cells)/mb,
		r.CPU, r.Collections, r.Refused, r.Errors)
}

func run(t parts.T, clients int, profile string) result {
	w := settled(t)
	p := w.Pods[0]
	r := result{Clients: clients, Idle: p.Sidecar.RSS()}
	cpu, collections := spent(w, p)
	load := startLoad(w, clients)
	counters := func() float64 { return w.Metric(p.Admin, "weir_sidecar_slots") }
	ended := make(chan struct{})
	go func() { load.Wait(); close(ended) }()
	for waiting := true; waiting; {
		select {
		case <-ended:
			waiting = false
		case <-time.After(100 * time.Millisecond):
		}
		r.Busy = max(r.Busy, p.Sidecar.RSS())
	}
	r.File = file(p.Sidecar.PID())
	r.Counters = int(counters())
	total := load.Result().Total()
	r.Refused, r.Errors = total.Denied, total.Errors+total.Unsent
	cpuAfter, collectionsAfter := spent(w, p)
	r.CPU, r.Collections = (cpuAfter-cpu)*1e6/float64(total.Requests()), int(collectionsAfter-collections)
	r.Cells = int64(r.Counters) * quota.CellWords * 8
	r.Heap = int64(w.Metric(p.Admin, "go_memstats_heap_inuse_bytes"))
	if profile != "" {
		w.Must(fetch("http://"+p.Admin+"/debug/pprof/heap?gc=1", profile))
	}
	return r
}

// spent is a sidecar's CPU seconds and collections until now.
func spent(w *world.World, p *world.Pod) (cpu, collections float64) {
	return w.Metric(p.Admin, "process_cpu_seconds_total"), w.Metric(p.Admin, "go_gc_duration_seconds_count")
}

// settled is one sidecar without an Envoy, ready.
func settled(t parts.T) *world.World {
	w := world.New(t)
	w.Write("p0.yaml", world.Policy(world.EachClient(100, "")))
	w.Kafka = parts.StartKafka(t, parts.KafkaOpts{})
	w.Redis = parts.StartRedis(t, parts.RedisOpts{})
	w.Upstream = parts.StartUpstream(t)
	w.EnsureTopics()
	w.AddOwner()
	w.AddPod()
	w.Ready()
	return w
}

func startLoad(w *world.World, clients int) *load.Run {
	length := time.Duration(rounds*clients) * time.Second / perSecond
	flood := load.Source{
		Name: "clients", Rate: load.Constant(perSecond),
		Make: func(k int) *load.Request {
			return &load.Request{Path: "/", Header: map[string]string{"x-api-key": "client-" + strconv.Itoa(k%clients)}}
		},
	}
	run, err := load.Start(load.Config{
		Pods:    []load.Pod{{Name: "orders-0", Target: load.GRPC("unix://"+w.Pods[0].Socket, 4)}},
		Sources: []load.Source{flood}, For: length, Outstanding: 2048,
	})
	w.Must(err)
	w.T.Cleanup(run.Stop)
	return run
}

// file is what is resident of mapped files, bytes; 0 if it cannot be read.
func file(pid int) int64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	fields := strings.Fields(string(b))
	if err != nil || len(fields) < 3 {
		return 0
	}
	pages, _ := strconv.ParseInt(fields[2], 10, 64)
	return pages * int64(os.Getpagesize())
}

func fetch(url, path string) error {
	res, err := http.Get(url) //nolint:gosec // the sidecar's own
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	return os.WriteFile(path, b, 0o600)
}
