package main

import "github.com/grafana/grafana-foundation-sdk/go/units"

// controllers is what happens between kube-apiserver and weir.
func controllers() row {
	return row{"Controller and injector", []panel{
		{title: "Leader", unit: units.Short,
			help:    "1 for the controller that writes. None: what is in force stays so, changes wait.",
			queries: []query{{"{{pod}}", `leader_election_master_status{name="weir-controller"}`}}},
		{title: "Reconciles", unit: units.OpsPerSecond,
			help:    "By controller and result.",
			queries: []query{{"{{controller}} {{result}}", `sum by (controller, result) (rate(controller_runtime_reconcile_total{job="weir-controller"}[$__rate_interval])) > 0`}}},
		{title: "Duration of a reconcile, p99", unit: units.Seconds,
			help:    "Without the time in the queue.",
			queries: []query{{"{{controller}}", `histogram_quantile(0.99, sum by (controller, le) (rate(controller_runtime_reconcile_time_seconds_bucket{job="weir-controller"}[$__rate_interval])))`}}},
		{title: "Queue", unit: units.Short,
			help:    "Objects that wait to be reconciled.",
			queries: []query{{"{{name}}", `sum by (name) (workqueue_depth{job="weir-controller"})`}}},
		{title: "Controllers that wait", unit: units.Short, bad: []float64{1},
			help:    "Parts that a controller waits for. Healthy: none.",
			queries: []query{{"{{pod}} {{part}}", `max by (pod, part) (weir_controller_waiting) > 0`}}},
		{title: "Pods that asked for a sidecar", unit: units.OpsPerSecond,
			help: "failed: admitted without the sidecar that was asked for. refused: an annotation that its author got wrong. Passed by: kube-apiserver could not reach the injector.",
			queries: []query{
				{"{{outcome}}", `sum by (outcome) (rate(weir_controller_injection_reviews_total[$__rate_interval])) > 0`},
				{"passed by", `sum(rate(apiserver_admission_webhook_fail_open_count{name=~".+\\.inject\\.weirproxy\\.dev"}[$__rate_interval])) > 0`},
			}},
		{title: "Duration of an injection, p99", unit: units.Seconds, bad: []float64{5},
			help:    "kube-apiserver waits 5 s, and then admits the pod without.",
			queries: []query{{"p99", `histogram_quantile(0.99, sum by (le) (rate(weir_controller_injection_seconds_bucket[$__rate_interval])))`}}},
		{title: "The injector's certificate ends in", unit: units.Seconds,
			help:    "Healthy: more than a month, in mode SelfManaged.",
			queries: []query{{"{{pod}}", `(max by (pod) (weir_controller_webhook_certificate_expiry_timestamp_seconds) > 0) - time()`}}},
	}}
}
