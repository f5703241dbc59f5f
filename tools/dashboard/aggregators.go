package main

import "github.com/grafana/grafana-foundation-sdk/go/units"

// aggregators is who owns what, and how far behind.
func aggregators() row {
	return row{"Aggregators", []panel{
		{title: "Partitions of each", unit: units.Short, stacked: true,
			help:    "Partitions that each aggregator decides. The sum stays the same over a hand-over, but for its moment.",
			queries: []query{{"{{pod}}", `count by (pod) (weir_aggregator_live == 1)`}}},
		{title: "Waiting", unit: units.Short, bad: []float64{1},
			help:    "Parts that an aggregator waits for. Healthy: none after its start.",
			queries: []query{{"{{pod}} {{reason}}", `max by (pod, reason) (weir_aggregator_waiting) > 0`}}},
		{title: "Units counted", unit: units.OpsPerSecond, stacked: true,
			help:    "Costs of admitted requests (1 each, unless a policy says otherwise), by partition.",
			queries: []query{{"partition {{partition}}", `sum by (partition) (rate(weir_aggregator_usage_units_total[$__rate_interval]))`}}},
		{title: "Usage read", unit: units.OpsPerSecond,
			help: "Reports, and the counters in them.",
			queries: []query{
				{"reports", `sum(rate(weir_aggregator_usage_messages_total[$__rate_interval]))`},
				{"counters in them", `sum(rate(weir_aggregator_usage_entries_total[$__rate_interval]))`},
			}},
		{title: "Usage skipped and lost", unit: units.OpsPerSecond,
			help: "Skipped, by reason: unknown_policy follows a policy's deletion for a while. Lost: gone from the topic before it was read.",
			queries: []query{
				{"{{reason}}", `sum by (reason) (rate(weir_aggregator_usage_skipped_total[$__rate_interval])) > 0`},
				{"lost", `sum(rate(weir_aggregator_usage_lost_total[$__rate_interval])) > 0`},
			}},
		{title: "Entries that wait", unit: units.Short,
			help:    "For a counter's state, its text or a policy. A moment at a take-over; what stays is a store that does not answer.",
			queries: []query{{"partition {{partition}}", `sum by (partition) (weir_aggregator_entries_waiting)`}}},
		{title: "Counters", unit: units.Short,
			help: "Held; decided each tick (hot); to be written to Redis (dirty).",
			queries: []query{
				{"held", `sum(weir_aggregator_counters)`},
				{"hot", `sum(weir_aggregator_counters_hot)`},
				{"dirty", `sum(weir_aggregator_counters_dirty)`},
			}},
		{title: "Targets without room", unit: units.Short, bad: []float64{1},
			help: "Targets whose table of counters is full, and what is charged to overflow counters meanwhile.",
			queries: []query{
				{"targets", `sum(weir_aggregator_targets_overflowing)`},
				{"entries a second", `sum(rate(weir_aggregator_usage_folded_total[$__rate_interval]))`},
			}},
		{title: "Pods that report", unit: units.Short,
			help:    "Incarnations of pods, by partition: one that restarted counts twice for a while.",
			queries: []query{{"partition {{partition}}", `sum by (partition) (weir_aggregator_pods)`}}},
		{title: "Decisions", unit: units.OpsPerSecond,
			help: "Batches sent, those whose budget did not reach for all records, and records.",
			queries: []query{
				{"batches", `sum(rate(weir_aggregator_batches_total[$__rate_interval]))`},
				{"deferred batches", `sum(rate(weir_aggregator_batches_deferred_total[$__rate_interval]))`},
				{"records", `sum(rate(weir_aggregator_records_total[$__rate_interval]))`},
			}},
		{title: "Memory", unit: units.BytesIEC,
			help:    "Resident.",
			queries: []query{{"{{pod}}", `process_resident_memory_bytes{job="weir-aggregator"}`}}},
		{title: "CPU", unit: units.Short,
			help:    "Cores.",
			queries: []query{{"{{pod}}", `rate(process_cpu_seconds_total{job="weir-aggregator"}[$__rate_interval])`}}},
	}}
}
