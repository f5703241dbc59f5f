package main

import "github.com/grafana/grafana-foundation-sdk/go/units"

// stores is Redis and Kafka as weir's programs see them.
func stores() row {
	return row{"Redis and Kafka", []panel{
		{title: "Partitions whose totals Redis does not take", unit: units.Short, bad: []float64{1},
			help:    "Healthy: 0. Owners go on from memory and write all of it later.",
			queries: []query{{"partitions", `count(max by (partition) (weir_aggregator_store_away) == 1) or vector(0)`}}},
		{title: "Written to Redis", unit: units.OpsPerSecond,
			help: "Flushes, and counters in them.",
			queries: []query{
				{"flushes", `sum(rate(weir_aggregator_store_flushes_total[$__rate_interval]))`},
				{"counters", `sum(rate(weir_aggregator_store_flushed_counters_total[$__rate_interval]))`},
				{"loads", `sum(rate(weir_aggregator_store_loads_total[$__rate_interval]))`},
			}},
		{title: "Redis's failures", unit: units.OpsPerSecond,
			help: "Errors: flushes that are written again. Losses: Redis had lost what it had confirmed (a failover, or emptied), and was rewritten.",
			queries: []query{
				{"errors", `sum(rate(weir_aggregator_store_errors_total[$__rate_interval]))`},
				{"losses", `sum(rate(weir_aggregator_store_losses_total[$__rate_interval]))`},
			}},
		{title: "Usage not yet in Redis", unit: units.Short,
			help:    "Reports that are counted in memory and not yet stored: what a new owner would read again.",
			queries: []query{{"partition {{partition}}", `max by (partition) (weir_aggregator_watermark - weir_aggregator_stored_offset)`}}},
		{title: "Reports that Kafka did not acknowledge", unit: units.PercentUnit, bad: []float64{0.05},
			help:    "Their counts travel with later ones. Healthy: 0.",
			queries: []query{{"{{namespace}}", `sum by (namespace) (rate(weir_sidecar_reports_failed_total{namespace=~"$namespace"}[$__rate_interval])) / sum by (namespace) (rate(weir_sidecar_reports_total{namespace=~"$namespace"}[$__rate_interval]))`}}},
		{title: "Usage sent", unit: units.BytesPerSecondIEC,
			help:    "Bytes of reports, before compression.",
			queries: []query{{"{{namespace}}", `sum by (namespace) (rate(weir_sidecar_report_bytes_total{namespace=~"$namespace"}[$__rate_interval]))`}}},
	}}
}
