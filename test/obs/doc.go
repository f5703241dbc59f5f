// Package obs has tests only: that what charts/weir gives to Prometheus and Grafana asks for metrics, labels and
// values that the programs really have, that alerts fire and do not (testdata/rules, by promtool), and that each has
// its runbook. Metrics are taken from the programs' own registries; what of Kubernetes is used is listed.
package obs
