package main

import "github.com/grafana/grafana-foundation-sdk/go/units"

// overview answers: is anybody's request affected, and is the quota held?
func overview() row {
	return row{"Now", []panel{
		{title: "Alerts that fire", number: true, unit: units.Short, bad: []float64{1},
			help:    "weir's own alerts. Each has a runbook.",
			queries: []query{{"{{alertname}}", `count by (alertname) (ALERTS{alertname=~"Weir.*", alertstate="firing"})`}}},
		{title: "Requests", number: true, unit: units.RequestsPerSecond,
			help:    "Requests that Envoys asked sidecars about.",
			queries: []query{{"", `sum(rate(weir_sidecar_checks_total{namespace=~"$namespace"}[$__rate_interval]))`}}},
		{title: "Refused", number: true, unit: units.PercentUnit,
			help:    "Part of the requests that a limit refused: no fault of weir's.",
			queries: []query{{"", `sum(rate(weir_sidecar_checks_total{namespace=~"$namespace", outcome=~"refused|refused_client"}[$__rate_interval])) / sum(rate(weir_sidecar_checks_total{namespace=~"$namespace"}[$__rate_interval]))`}}},
		{title: "Checks that fail", number: true, unit: units.PercentUnit, bad: []float64{0.001, 0.01},
			help:    "Part of the requests that sidecars could not judge: Envoy's failure mode decides them. Healthy: 0.",
			queries: []query{{"", `sum(rate(weir_sidecar_checks_total{namespace=~"$namespace", outcome=~"not_loaded|overloaded|failed|malformed"}[$__rate_interval])) / sum(rate(weir_sidecar_checks_total{namespace=~"$namespace"}[$__rate_interval]))`}}},
		{title: "Pods with a sidecar", number: true, unit: units.Short,
			help:    "Sidecars that are scraped.",
			queries: []query{{"", `count(weir_sidecar_ready{namespace=~"$namespace"})`}}},
		{title: "Pods on their own share", number: true, unit: units.Short, bad: []float64{1},
			help:    "Sidecars that hear no decisions: each holds its share alone, no request fails. Healthy: 0.",
			queries: []query{{"", `count(weir_sidecar_degraded_reason{namespace=~"$namespace", reason="decisions"}) or vector(0)`}}},
		{title: "Fullest counter", number: true, unit: units.PercentUnit, bad: []float64{1.1, 1.25},
			help:    "The most that a counter of any limit held in the last minute, of its amount. Above 100 % more passed than the limit says: 10 to 30 % in a burst is within what docs/accuracy.md promises.",
			queries: []query{{"", `max(weir_aggregator_limit_fullest_ratio{policy=~"$policy"})`}}},
		{title: "Partitions decided", number: true, unit: units.Short,
			help:    "Partitions that an aggregator decides: all that the installation has.",
			queries: []query{{"", `count(weir_aggregator_live == 1)`}}},
	}}
}
