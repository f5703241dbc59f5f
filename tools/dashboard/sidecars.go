package main

import "github.com/grafana/grafana-foundation-sdk/go/units"

// sidecars is how they are, and what they cost.
func sidecars() row {
	return row{"Sidecars", []panel{
		{title: "Pods by what degrades them", unit: units.Short,
			help:    "Healthy: empty. strict_unavailable is no fault: a Strict limit of under four units a pod runs as Normal.",
			queries: []query{{"{{reason}}", `count by (reason) (weir_sidecar_degraded_reason{namespace=~"$namespace"})`}}},
		{title: "Duration of a check", unit: units.Seconds,
			help: "Inside the sidecar, one check in 64. Healthy: microseconds; nothing on this path waits.",
			queries: []query{
				{"p50", `histogram_quantile(0.5, sum by (le) (rate(weir_sidecar_check_seconds_bucket{namespace=~"$namespace"}[$__rate_interval])))`},
				{"p99", `histogram_quantile(0.99, sum by (le) (rate(weir_sidecar_check_seconds_bucket{namespace=~"$namespace"}[$__rate_interval])))`},
			}},
		{title: "Checks of a pod", unit: units.RequestsPerSecond,
			help: "How evenly requests are spread.",
			queries: []query{
				{"busiest", `max(sum by (namespace, pod) (rate(weir_sidecar_checks_total{namespace=~"$namespace"}[$__rate_interval])))`},
				{"mean", `avg(sum by (namespace, pod) (rate(weir_sidecar_checks_total{namespace=~"$namespace"}[$__rate_interval])))`},
			}},
		{title: "Table of counters", unit: units.PercentUnit, bad: []float64{1},
			help: "Counters held, of the most that a sidecar holds (maxCounters): the fullest pod and the mean.",
			queries: []query{
				{"fullest", `max(weir_sidecar_slots{namespace=~"$namespace"} / weir_sidecar_slots_capacity{namespace=~"$namespace"})`},
				{"mean", `avg(weir_sidecar_slots{namespace=~"$namespace"} / weir_sidecar_slots_capacity{namespace=~"$namespace"})`},
			}},
		{title: "New counters without room", unit: units.OpsPerSecond,
			help:    "They share their limit's overflow counter. Healthy: 0.",
			queries: []query{{"{{namespace}}", `sum by (namespace) (rate(weir_sidecar_slots_full_total{namespace=~"$namespace"}[$__rate_interval]))`}}},
		{title: "Records not remembered", unit: units.OpsPerSecond,
			help:    "Decisions of counters that a pod has not met, dropped at the table's bound: those furthest from their limit go first.",
			queries: []query{{"{{namespace}}", `sum by (namespace) (rate(weir_sidecar_known_dropped_total{namespace=~"$namespace"}[$__rate_interval]))`}}},
		{title: "Memory of a sidecar", unit: units.BytesIEC,
			help: "Resident.",
			queries: []query{
				{"largest", `max(process_resident_memory_bytes{job="weir-sidecar", namespace=~"$namespace"})`},
				{"mean", `avg(process_resident_memory_bytes{job="weir-sidecar", namespace=~"$namespace"})`},
			}},
		{title: "CPU of a sidecar", unit: units.Short,
			help: "Cores.",
			queries: []query{
				{"busiest", `max(rate(process_cpu_seconds_total{job="weir-sidecar", namespace=~"$namespace"}[$__rate_interval]))`},
				{"mean", `avg(rate(process_cpu_seconds_total{job="weir-sidecar", namespace=~"$namespace"}[$__rate_interval]))`},
			}},
		{title: "Failures that are retried", unit: units.OpsPerSecond,
			help: "Healthy: 0.",
			queries: []query{
				{"read {{topic}}", `sum by (topic) (rate(weir_sidecar_read_errors_total{namespace=~"$namespace"}[$__rate_interval]))`},
				{"status", `sum(rate(weir_sidecar_status_failed_total{namespace=~"$namespace"}[$__rate_interval]))`},
				{"last good policies", `sum(rate(weir_sidecar_last_good_failed_total{namespace=~"$namespace"}[$__rate_interval]))`},
			}},
	}}
}
