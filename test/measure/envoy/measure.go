//go:build linux

package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/weirproxy/weir/test/parts"
)

// variant is one thing that is measured in turn with others.
type variant struct {
	suite    string
	name     string
	requests string // "allow", "one client" or "refuse"
	envoy    *parts.Envoy
	checker  *parts.Process // nil without the filter
	// around brings about what goes on meanwhile, and ends it; nil: nothing.
	around func(length time.Duration) (end func())
}

// round is what one turn of a variant gave.
type round struct {
	rate        float64 // requests a second
	p50, p99    float64 // µs
	envoy, user float64 // CPU a request of Envoy and of the checker, µs
}

// row is a variant at a number of connections, over all rounds.
type row struct {
	Suite       string  `json:"suite"`
	Variant     string  `json:"variant"`
	Case        string  `json:"case"`
	Connections int     `json:"connections"`
	Rate        float64 `json:"requests_per_second"`
	RateSpread  float64 `json:"requests_per_second_spread"` // of the rounds: (largest - smallest) / median
	P50         float64 `json:"p50_us"`
	P99         float64 `json:"p99_us"`
	Envoy       float64 `json:"envoy_cpu_us_a_request"`
	Checker     float64 `json:"checker_cpu_us_a_request"`
	// AddedP50 is over the Envoy without the filter; 0 where none was measured.
	AddedP50 float64 `json:"added_p50_us"`

	rounds []round
}

// run measures all suites of the options.
func run(t parts.T, o options) report {
	r := newRig(t, o)
	var out report
	for _, suite := range o.suites {
		connections, variants := r.suite(suite)
		rows := make([]row, 0, len(variants)*len(connections))
		for _, n := range connections {
			for _, v := range variants {
				rows = append(rows, row{Suite: suite, Variant: v.name, Case: v.requests, Connections: n})
			}
		}
		for k := range r.rounds(suite) {
			i := 0
			for _, n := range connections {
				for range variants { // each round begins with another variant
					at := (i%len(variants) + k) % len(variants)
					rows[i/len(variants)*len(variants)+at].add(r.turn(variants[at], n))
					i++
				}
			}
		}
		out.rows = append(out.rows, summed(rows)...)
	}
	out.judge()
	return out
}

// suite returns the variants of a suite, and at how many connections each is measured.
func (r *rig) suite(name string) (connections []int, variants []variant) {
	own, viaGRPC := "unix://"+r.own.Socket, "unix://"+r.grpc.Socket
	switch name {
	case "servers":
		bare := r.front("", nil)
		ownFront, grpcFront := r.front(own, nil), r.front(viaGRPC, nil)
		return []int{1, 8, 32, 64}, []variant{
			{name: "no filter", requests: "allow", envoy: bare},
			{name: noopName, requests: "allow", envoy: r.front("unix://"+r.noopAt, nil), checker: r.noop},
			{name: ownName, requests: "allow", envoy: ownFront, checker: r.own.Sidecar},
			{name: ownName, requests: "refuse", envoy: ownFront, checker: r.own.Sidecar},
			{name: grpcName, requests: "allow", envoy: grpcFront, checker: r.grpc.Sidecar},
			{name: grpcName, requests: "refuse", envoy: grpcFront, checker: r.grpc.Sidecar},
		}
	case "cost":
		return []int{1, 32}, r.costs(own)
	default:
		return []int{32}, r.disturbances(own)
	}
}

// rounds is fewer where bringing a disturbance about takes longer than to measure it.
func (r *rig) rounds(suite string) int {
	if suite == "disturbed" {
		return min(r.options.rounds, 5)
	}
	return r.options.rounds
}

// costs vary one choice each.
func (r *rig) costs(own string) []variant {
	tcp, plain, threads := r.tcpPod(), r.plainPod(), r.threadsPod()
	return []variant{
		{name: baseName, requests: "allow", envoy: r.front(own, nil), checker: r.own.Sidecar},
		{name: "one client instead of 10,000", requests: "one client", envoy: r.front(own, nil), checker: r.own.Sidecar},
		{name: "no RateLimit fields in answers", requests: "allow", envoy: r.front("unix://"+plain.Socket, nil), checker: plain.Sidecar},
		{name: "TCP instead of a unix socket", requests: "allow", envoy: r.front(tcp.address, nil), checker: tcp.pod.Sidecar},
		{name: "GOMAXPROCS=2 instead of one core until it is busy", requests: "allow", envoy: r.front("unix://"+threads.Socket, nil), checker: threads.Sidecar},
		{
			name: "allowed_headers: x-api-key alone", requests: "allow", checker: r.own.Sidecar,
			envoy: r.front(own, func(a *parts.Authz) { a.AllowedHeaders = []string{"x-api-key"} }),
		},
		{
			name: "encode_raw_headers", requests: "allow", checker: r.own.Sidecar,
			envoy: r.front(own, func(a *parts.Authz) { a.EncodeRawHeaders = true }),
		},
	}
}

// disturbances are a quiet run, and runs with something going on. That of decisions has a quiet run of its own, in which
// the spare pod has the same load.
func (r *rig) disturbances(own string) []variant {
	front := r.front(own, nil)
	with := func(name string, around func(time.Duration) func()) variant {
		return variant{suite: "disturbed", name: name, requests: "allow", envoy: front, checker: r.own.Sidecar, around: around}
	}
	reloads := 0
	return []variant{
		with(quietName, nil),
		with("a policy reload each second", func(time.Duration) func() {
			return every(time.Second, func() { reloads++; r.reload(reloads) })
		}),
		with("brokers frozen", func(time.Duration) func() {
			r.Kafka.Pause()
			time.Sleep(3 * time.Second) // until what was decided has become stale
			return func() {
				r.Kafka.Resume()
				r.Ready()
			}
		}),
		with(quietLoadName, func(length time.Duration) func() { return r.background(length+time.Second, false).Stop }),
		with(decisionsName, func(length time.Duration) func() {
			run := r.background(length+2*time.Second, true)
			time.Sleep(time.Second) // until decisions come
			before := r.Metric(r.own.Admin, "weir_sidecar_decision_records_total")
			start := time.Now()
			return func() {
				heard := r.Metric(r.own.Admin, "weir_sidecar_decision_records_total") - before
				r.T.Logf("%.0f decisions a second", heard/time.Since(start).Seconds())
				run.Stop()
			}
		}),
	}
}

// every calls f at once and then each period, until end is called.
func every(period time.Duration, f func()) (end func()) {
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(period)
		defer tick.Stop()
		for {
			f()
			select {
			case <-stop:
				return
			case <-tick.C:
			}
		}
	}()
	return func() { close(stop); <-done }
}

// turn measures a variant once. Every answer must be what the variant is about.
func (r *rig) turn(v variant, connections int) round {
	length := r.options.warm + r.options.each
	if v.suite == "disturbed" {
		length += 2 * r.options.each
	}
	if v.around != nil {
		defer v.around(length)()
	}
	c, err := dial(v.envoy.Addr(), connections, r.requests[v.requests])
	r.Must(err)
	defer c.close()
	_, err = c.run(r.options.warm)
	r.Must(err)
	before := r.used(v)
	s, err := c.run(length - r.options.warm)
	r.Must(err)
	after := r.used(v)
	status := map[string]int{"allow": 200, "one client": 200, "refuse": 429}[v.requests]
	if len(s.times) == 0 || s.statuses[status] != len(s.times) {
		r.T.Fatalf("%s, %s: answers by status %v, want %d alone", v.name, v.requests, s.statuses, status)
	}
	slices.Sort(s.times)
	n := float64(len(s.times))
	at := func(q float64) float64 { return micros(s.times[int(q*(n-1))]) }
	return round{
		rate: n / s.took.Seconds(), p50: at(0.5), p99: at(0.99),
		envoy: micros(after[0]-before[0]) / n, user: micros(after[1]-before[1]) / n,
	}
}

// used is the CPU time of Envoy and of the checker so far.
func (r *rig) used(v variant) (used [2]time.Duration) {
	used[0] = cpu(v.envoy.Process())
	if v.checker != nil {
		used[1] = cpu(v.checker)
	}
	return used
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

func (w *row) add(r round) { w.rounds = append(w.rounds, r) }

// summed makes the rows' medians.
func summed(rows []row) []row {
	for i := range rows {
		w := &rows[i]
		of := func(f func(round) float64) float64 { return median(w.rounds, f) }
		w.Rate, w.P50, w.P99 = of(func(r round) float64 { return r.rate }), of(func(r round) float64 { return r.p50 }), of(func(r round) float64 { return r.p99 })
		w.Envoy, w.Checker = of(func(r round) float64 { return r.envoy }), of(func(r round) float64 { return r.user })
		rates := make([]float64, 0, len(w.rounds))
		for _, r := range w.rounds {
			rates = append(rates, r.rate)
		}
		w.RateSpread = (slices.Max(rates) - slices.Min(rates)) / w.Rate
	}
	for i := range rows {
		for _, base := range rows {
			if base.Variant == "no filter" && base.Connections == rows[i].Connections {
				rows[i].AddedP50 = rows[i].P50 - base.P50
			}
		}
	}
	return rows
}

func median(rounds []round, f func(round) float64) float64 {
	values := make([]float64, 0, len(rounds))
	for _, r := range rounds {
		values = append(values, f(r))
	}
	slices.Sort(values)
	n := len(values)
	return (values[(n-1)/2] + values[n/2]) / 2
}

// String names a row.
func (w *row) String() string { return fmt.Sprintf("%s, %s, c=%d", w.Variant, w.Case, w.Connections) }
