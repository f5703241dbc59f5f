//go:build linux

// Command envoy measures what a check costs behind a real Envoy, and what it costs the request: weir's two check
// servers against a grpc-go server whose Check does nothing, and against an Envoy without the filter.
//
//	make bench-envoy                                  all of it, about 7 min
//	go run ./test/measure/envoy -quick                40 s, to see that it works
//	go run ./test/measure/envoy -json                 JSON lines: one a variant and number of connections, one a bar
//	go run ./test/measure/envoy -suite disturbed      only the quiet runs against those with something going on
//	go run ./test/measure/envoy -suite cost           only the cost of each choice
//
// One Envoy with one worker in front of another that answers 200; a closed loop of HTTP/1.1 over 1, 8, 32 and 64
// connections from one thread. All variants take turns within each round, many short ones, and a figure is the median of the
// rounds, so that what the machine does meanwhile hits all alike. Ratios are the result; absolute times describe the machine.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/weirproxy/weir/test/parts"
)

// options of one run.
type options struct {
	rounds  int
	each    time.Duration // of one variant in one round
	warm    time.Duration // before it, not measured
	clients int           // distinct clients, a counter each
	suites  []string
	json    bool
}

var suites = []string{"servers", "cost", "disturbed"}

func main() {
	o := options{}
	flag.IntVar(&o.rounds, "rounds", 9, "rounds, of which figures are the median (of disturbances at most 5)")
	flag.DurationVar(&o.each, "each", 600*time.Millisecond, "length of one variant in one round; three times it with something going on")
	flag.DurationVar(&o.warm, "warm", 200*time.Millisecond, "load before each, not measured")
	flag.IntVar(&o.clients, "clients", 10_000, "distinct clients, a live counter each")
	flag.BoolVar(&o.json, "json", false, "print JSON lines")
	quick := flag.Bool("quick", false, "one short round: to see that it works, not to measure")
	strict := flag.Bool("strict", false, "exit code 1 where a bar is missed")
	suite := flag.String("suite", "", "only one of servers, cost, disturbed")
	checker := flag.String("serve-noop", "", "be the grpc-go server whose Check does nothing, on this unix socket")
	flag.Parse()
	if *checker != "" {
		exit(serveNoop(*checker))
	}
	if *quick {
		o.rounds, o.each, o.clients = 1, 200*time.Millisecond, 1000
	}
	o.suites = suites
	if *suite != "" {
		if !slices.Contains(suites, *suite) {
			exit(fmt.Errorf("-suite %s: there are %q", *suite, suites))
		}
		o.suites = []string{*suite}
	}
	var r report
	if err := parts.Run(func(t parts.T) { r = run(t, o) }); err != nil {
		exit(err)
	}
	if o.json {
		exit(r.writeJSON(os.Stdout))
	}
	r.writeText(os.Stdout)
	if *strict && r.missed() {
		exit(errors.New("a bar is missed"))
	}
}

// exit ends the program where err says why; and after -serve-noop and -json in any case.
func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench-envoy:", err)
		os.Exit(1)
	}
	os.Exit(0)
}
