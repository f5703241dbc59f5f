package main

import "github.com/grafana/grafana-foundation-sdk/go/units"

// freshness is what accuracy depends on: how late pods know of one another.
func freshness() row {
	return row{"Freshness", []panel{
		{title: "Age of decisions, largest in a minute", unit: units.Seconds, bad: []float64{0.5},
			help: "How old the newest decision header came to be at a pod: the median pod and the worst. Healthy: some 0.1 s. Beyond staleAfter (0.5 s by default) a pod holds its own share.",
			queries: []query{
				{"partition {{partition}}, median", `quantile by (partition) (0.5, weir_sidecar_decision_age_max_seconds{namespace=~"$namespace"} >= 0)`},
				{"partition {{partition}}, worst", `max by (partition) (weir_sidecar_decision_age_max_seconds{namespace=~"$namespace"})`},
			}},
		{title: "Propagation", unit: units.Seconds, bad: []float64{0.5},
			help: "Time until the decision that a pod goes by includes its report. p99 of newest is to be below 0.1 s; oldest includes the wait for the flush, up to 1 s for counters far below their limit.",
			queries: []query{
				{"since {{since}}, p50", `histogram_quantile(0.5, sum by (since, le) (rate(weir_sidecar_propagation_seconds_bucket{namespace=~"$namespace"}[$__rate_interval])))`},
				{"since {{since}}, p99", `histogram_quantile(0.99, sum by (since, le) (rate(weir_sidecar_propagation_seconds_bucket{namespace=~"$namespace"}[$__rate_interval])))`},
			}},
		{title: "Inclusion at the owner", unit: units.Seconds,
			help: "Time from a report's append until a header includes it: the aggregator's part of propagation. What is left is Kafka's.",
			queries: []query{
				{"p50", `histogram_quantile(0.5, sum by (le) (rate(weir_aggregator_inclusion_seconds_bucket[$__rate_interval])))`},
				{"p99", `histogram_quantile(0.99, sum by (le) (rate(weir_aggregator_inclusion_seconds_bucket[$__rate_interval])))`},
			}},
		{title: "Reports", unit: units.OpsPerSecond,
			help: "Usage reports handed to Kafka; urgent ones go ahead of the flush period. Coalesced: put off, as an earlier one is not yet acknowledged.",
			queries: []query{
				{"sent", `sum(rate(weir_sidecar_reports_total{namespace=~"$namespace"}[$__rate_interval]))`},
				{"urgent", `sum(rate(weir_sidecar_reports_urgent_total{namespace=~"$namespace"}[$__rate_interval]))`},
				{"coalesced", `sum(rate(weir_sidecar_reports_coalesced_total{namespace=~"$namespace"}[$__rate_interval]))`},
				{"not acknowledged", `sum(rate(weir_sidecar_reports_failed_total{namespace=~"$namespace"}[$__rate_interval]))`},
			}},
		{title: "Decisions taken up", unit: units.OpsPerSecond,
			help: "Batches and records that sidecars apply, of all pods.",
			queries: []query{
				{"batches", `sum(rate(weir_sidecar_decision_batches_total{namespace=~"$namespace"}[$__rate_interval]))`},
				{"records", `sum(rate(weir_sidecar_decision_records_total{namespace=~"$namespace"}[$__rate_interval]))`},
			}},
		{title: "Decisions ignored", unit: units.OpsPerSecond,
			help:    "old_epoch and old_sequence: what a replaced owner still sent, for moments. fingerprint: another identity key. lag: a header that is over 1 s behind the pod's own usage.",
			queries: []query{{"{{reason}}", `sum by (reason) (rate(weir_sidecar_decisions_ignored_total{namespace=~"$namespace"}[$__rate_interval]))`}}},
	}}
}
