package main

import "github.com/grafana/grafana-foundation-sdk/go/units"

// limits is what policies do to requests. Policies stand for their targets: no metric has a target's name beside them.
func limits() row {
	return row{"Limits", []panel{
		{title: "Requests by outcome", unit: units.RequestsPerSecond, stacked: true,
			help:    "refused: by a limit. no_policy: no policy names the pod. no_limit: policies do, and none of their limits applies to the request. not_loaded, overloaded, failed, malformed: Envoy's failure mode decides.",
			queries: []query{{"{{outcome}}", `sum by (outcome) (rate(weir_sidecar_checks_total{namespace=~"$namespace"}[$__rate_interval])) > 0`}}},
		{title: "Refused by limit", unit: units.RequestsPerSecond, stacked: true,
			help:    "Requests that a limit refused. A request that several limits would have refused counts for each.",
			queries: []query{{"{{policy}} {{limit}}", `sum by (policy, limit) (rate(weir_sidecar_limit_refusals_total{namespace=~"$namespace", policy=~"$policy", mode="enforced"}[$__rate_interval])) > 0`}}},
		{title: "Would be refused (shadow)", unit: units.RequestsPerSecond, stacked: true,
			help:    "Requests that limits in mode Shadow, or outside of a canary, would have refused.",
			queries: []query{{"{{policy}} {{limit}}", `sum by (policy, limit) (rate(weir_sidecar_limit_refusals_total{namespace=~"$namespace", policy=~"$policy", mode="shadow"}[$__rate_interval])) > 0`}}},
		{title: "Fullest counter of each limit", unit: units.PercentUnit, bad: []float64{1.25},
			help:    "The most that one counter held in the last minute, of its amount. A limit that is in demand sits near 100 %.",
			queries: []query{{"{{policy}} {{limit}} {{rate}}", `max by (policy, limit, rate) (weir_aggregator_limit_fullest_ratio{policy=~"$policy"})`}}},
		{title: "Admitted beyond limits", unit: units.RequestsPerSecond,
			help:    "Units admitted beyond counters' amounts, as it turned out once late reports were in. Peaks are first fronts of bursts.",
			queries: []query{{"{{policy}} {{limit}} {{rate}}", `sum by (policy, limit, rate) (rate(weir_aggregator_limit_over_units_total{policy=~"$policy"}[$__rate_interval]))`}}},
		{title: "Time beyond limits", unit: units.Seconds,
			help:    "Seconds a second, summed over counters, for which they held more than their amount.",
			queries: []query{{"{{policy}} {{limit}} {{rate}}", `sum by (policy, limit, rate) (rate(weir_aggregator_limit_over_seconds_total{policy=~"$policy"}[$__rate_interval]))`}}},
		{title: "Versions of a policy in force", unit: units.Short, bad: []float64{2},
			help:    "How many versions of each policy sidecars have in force. 1, but for the seconds after a change; what stays at 2 is a pod that lags.",
			queries: []query{{"{{policy}}", `count by (policy) (group by (policy, version) (count_values by (policy) ("version", weir_sidecar_policy_version{namespace=~"$namespace"})))`}}},
		{title: "Requests without a policy", unit: units.RequestsPerSecond, stacked: true,
			help:    "Allowed and uncounted, as no policy names the pod.",
			queries: []query{{"{{namespace}}", `sum by (namespace) (rate(weir_sidecar_checks_total{namespace=~"$namespace", outcome="no_policy"}[$__rate_interval]))`}}},
		{title: "Pods that keep an older version", unit: units.Short, bad: []float64{1},
			help:    "Sidecars with a policy that they refuse, or of which two origins have the same name.",
			queries: []query{{"{{reason}}", `count by (reason) (weir_sidecar_degraded_reason{namespace=~"$namespace", reason=~"policies_refused|policies_conflict"})`}}},
	}}
}
