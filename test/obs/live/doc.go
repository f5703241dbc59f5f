// Package live has tests only: the chart's alerts and dashboard in a real Prometheus that collects from weir's
// programs as they run, on real Envoys, Kafka and Redis.
package live
