package main

import (
	"bytes"
	"fmt"
	"regexp"
	"sort"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	aggregator "github.com/weirproxy/weir/aggregator/metrics"
	"github.com/weirproxy/weir/controller"
	sidecar "github.com/weirproxy/weir/sidecar/metrics"
)

const metricsHead = `<!-- Generated from the packages that register them by go generate ./api/config. Do not edit. -->
# Metrics of the programs

weir-sidecar and weir-aggregator serve ` + "`/metrics`" + ` in Prometheus's text format at the admin address, or at ` + "`admin.metricsAddress`" + ` where
that is set; weir-controller at ` + "`metrics.address`" + `, with controller-runtime's own (` + "`controller_runtime_*`, `workqueue_*`, `rest_client_*`, `leader_election_*`" + `). Beside those below there are Go's own (` + "`go_*`" + `) and the process's (` + "`process_*`" + `). No label holds what a
request carries: outcomes, reasons and modes are bounded by the program, policies and limits by the policies in force,
partitions by the installation.
`

// metricsPage lists every metric that the programs register.
func metricsPage() ([]byte, error) {
	side, owner, kube := &recorder{}, &recorder{}, &recorder{}
	sidecar.New(side, sidecar.Sources{
		Slots: func() (int, int, int) { return 0, 0, 0 }, Overflowed: func() uint64 { return 0 },
		Known: func() (int, uint64) { return 0, 0 },
		Ready: func() bool { return false }, Degraded: func() bool { return false },
	})
	aggregator.New(owner)
	controller.RegisterMetrics(kube)
	var b bytes.Buffer
	b.WriteString(metricsHead)
	for _, p := range []struct {
		name string
		made *recorder
	}{{"weir-sidecar", side}, {"weir-aggregator", owner}, {"weir-controller", kube}} {
		fmt.Fprintf(&b, "\n## %s\n\n| metric | type | labels | what it says |\n|---|---|---|---|\n", p.name)
		rows, err := p.made.rows()
		if err != nil {
			return nil, err
		}
		sort.Slice(rows, func(i, j int) bool { return nameOf(rows[i]) < nameOf(rows[j]) })
		b.WriteString(strings.Join(rows, ""))
	}
	return b.Bytes(), nil
}

// recorder is a prometheus.Registerer that keeps what is registered.
type recorder struct{ made []prometheus.Collector }

func (r *recorder) Register(c prometheus.Collector) error {
	r.made = append(r.made, c)
	return nil
}

func (r *recorder) MustRegister(all ...prometheus.Collector) { r.made = append(r.made, all...) }

func (r *recorder) Unregister(prometheus.Collector) bool { return false }

func (r *recorder) rows() ([]string, error) {
	var rows []string
	for _, c := range r.made {
		descs := make(chan *prometheus.Desc, 1) // each of ours has one
		c.Describe(descs)
		row, err := metricRow((<-descs).String(), kind(c))
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// described is how a Desc prints: the library gives no other way to its parts.
var described = regexp.MustCompile(`^Desc\{fqName: ("(?:[^"\\]|\\.)*"), help: ("(?:[^"\\]|\\.)*"),.* constLabels: \{\}, variableLabels: \{([^}]*)\}`)

func metricRow(desc, kind string) (string, error) {
	m := described.FindStringSubmatch(desc)
	if m == nil {
		return "", fmt.Errorf("the description of a metric does not read as expected: %s", desc)
	}
	name, nameErr := strconv.Unquote(m[1])
	help, helpErr := strconv.Unquote(m[2])
	if nameErr != nil || helpErr != nil || help == "" || kind == "" {
		return "", fmt.Errorf("a metric without a name, help text or known type: %s", desc)
	}
	var labels []string
	for _, l := range strings.Split(m[3], ",") {
		if l != "" {
			labels = append(labels, "`"+strings.TrimSpace(l)+"`")
		}
	}
	return fmt.Sprintf("| `%s` | %s | %s | %s |\n", name, kind, strings.Join(labels, ", "), cell(help)), nil
}

func nameOf(row string) string { return strings.Split(row, "`")[1] }

// kind names a collector's type; "" where it is not known.
func kind(c prometheus.Collector) string {
	switch c.(type) {
	case *prometheus.CounterVec:
		return "counter"
	case *prometheus.GaugeVec:
		return "gauge"
	case *prometheus.HistogramVec:
		return "histogram"
	}
	reg := prometheus.NewRegistry() // one without labels has a value at once, and with it a type
	if reg.Register(c) != nil {
		return ""
	}
	if families, err := reg.Gather(); err == nil && len(families) == 1 {
		return strings.ToLower(families[0].GetType().String())
	}
	return ""
}
