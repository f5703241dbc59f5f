// Command broker measures what weir's clients cost a real Kafka broker: the CPU of one produced
// report and of one delivered decision batch, with many small clients as pods are. From the two it
// derives how many pods one usage partition supports on one broker core.
//
//	go run ./test/measure/broker            a table
//	go run ./test/measure/broker -json      one JSON object
//
// The broker shares the machine with the clients, so only its own CPU time counts, as the kernel
// accounts it, less what it uses with every client connected and idle.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/weirproxy/weir/test/parts"
)

// options of one run; sizes are bytes, rates are per second.
type options struct {
	clients       int
	seconds       int
	reportsPerPod int
	reportSize    int
	batches       int
	batchSize     int
}

// result is what was measured; CPU in microseconds of one core.
type result struct {
	Clients            int     `json:"clients"`
	IdleCores          float64 `json:"idle_cores"`
	Produces           int64   `json:"produces"`
	ProducesFailed     int64   `json:"produces_failed"`
	CPUProduce         float64 `json:"cpu_us_a_produce"`
	Fetches            int64   `json:"fetches"`
	CPUFetch           float64 `json:"cpu_us_a_delivered_fetch"`
	CoresHot1000       float64 `json:"cores_1000_pods_hot"`
	CoresQuiet1000     float64 `json:"cores_1000_pods_quiet"`
	PodsHotOnOneCore   int     `json:"pods_a_core_hot"`
	PodsQuietOnOneCore int     `json:"pods_a_core_quiet"`
}

// What a pod does to its partition, per second: hot, a report each flush of 50 ms and a batch each
// tick of 25 ms; quiet, a report and ten idle ticks.
const (
	hotReports, hotBatches     = 20, 40
	quietReports, quietBatches = 1, 10
)

func main() {
	o := options{}
	asJSON := flag.Bool("json", false, "print one JSON object")
	flag.IntVar(&o.clients, "clients", 200, "small clients, each with connections of its own")
	flag.IntVar(&o.seconds, "seconds", 20, "length of each part")
	flag.IntVar(&o.reportsPerPod, "reports", 10, "reports/s a client")
	flag.IntVar(&o.reportSize, "report-bytes", 300, "size of a report")
	flag.IntVar(&o.batches, "batches", 20, "decision batches/s")
	flag.IntVar(&o.batchSize, "batch-bytes", 800, "size of a decision batch")
	flag.Parse()
	var r result
	err := parts.Run(func(t parts.T) { r = measure(t, o) })
	if err != nil {
		fmt.Fprintln(os.Stderr, "broker:", err)
		os.Exit(1)
	}
	if *asJSON {
		err = json.NewEncoder(os.Stdout).Encode(r)
	} else {
		err = r.print()
	}
	if err != nil {
		os.Exit(1)
	}
}

func measure(t parts.T, o options) result {
	kafka := parts.StartKafka(t, parts.KafkaOpts{})
	fleet := newFleet(t, kafka.Addr(), o)
	length := time.Duration(o.seconds) * time.Second
	fleet.produce(o, length) // the JVM compiles what is hot meanwhile
	fleet.broadcast(o, length)

	idle := cores(kafka, length, func() { time.Sleep(length) })
	before := fleet.acked.Load()
	failed := fleet.failed.Load()
	produce := cores(kafka, length, func() { fleet.produce(o, length) })
	produced := fleet.acked.Load() - before

	beforeFetch := fleet.delivered.Load()
	fetch := cores(kafka, length, func() { fleet.broadcast(o, length) })
	fetched := fleet.delivered.Load() - beforeFetch

	r := result{
		Clients: o.clients, IdleCores: idle, Produces: produced, ProducesFailed: fleet.failed.Load() - failed,
		CPUProduce: perUnit(produce-idle, length, produced),
		Fetches:    fetched, CPUFetch: perUnit(fetch, length, fetched), // a client that gets batches does not also wait idly
	}
	r.derive()
	return r
}

// cores returns the CPU that the broker used while f ran, in cores over the length.
func cores(k *parts.Kafka, length time.Duration, f func()) float64 {
	before := k.CPU()
	f()
	return (k.CPU() - before).Seconds() / length.Seconds()
}

func perUnit(cores float64, length time.Duration, n int64) float64 {
	if n == 0 {
		return 0
	}
	return cores * length.Seconds() * 1e6 / float64(n)
}

func (r *result) derive() {
	hot := (hotReports*r.CPUProduce + hotBatches*r.CPUFetch) / 1e6
	quiet := (quietReports*r.CPUProduce + quietBatches*r.CPUFetch) / 1e6
	r.CoresHot1000, r.CoresQuiet1000 = 1000*hot, 1000*quiet
	if hot > 0 && quiet > 0 {
		r.PodsHotOnOneCore, r.PodsQuietOnOneCore = int(1/hot), int(1/quiet)
	}
}

func (r *result) print() error {
	_, err := fmt.Printf(`| what | measured |
|---|---|
| clients, each with its own connections | %d |
| broker at rest with all of them waiting for batches | %.2f cores |
| CPU a produced report (%d, %d failed) | %.0f µs |
| CPU a delivered batch (%d) | %.0f µs |
| 1000 pods on one hot partition (20 reports/s, 40 batches/s) | %.1f cores |
| 1000 pods on one quiet partition (1 report/s, 10 batches/s) | %.1f cores |
| pods that one broker core carries, hot / quiet | %d / %d |
`, r.Clients, r.IdleCores, r.Produces, r.ProducesFailed, r.CPUProduce, r.Fetches, r.CPUFetch,
		r.CoresHot1000, r.CoresQuiet1000, r.PodsHotOnOneCore, r.PodsQuietOnOneCore)
	return err
}
