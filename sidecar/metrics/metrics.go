// Package metrics owns the name of every metric that the sidecar exports. No label ever holds what a
// request carries: outcomes, reasons and the names of limits are bounded by the program and by the
// policies in force; partitions by those that the pod reads.
package metrics

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
)

const namespace = "weir_sidecar"

// Outcome is what came of a check: a label's value.
type Outcome uint8

// The outcomes.
const (
	Allowed       Outcome = iota
	Refused               // by a limit
	RefusedClient         // an unknown client, where the policy refuses those
	NoPolicy              // allowed: no policy names the target
	NoLimit               // allowed: policies do, but no limit applies
	Uncounted             // allowed: a counter had no room, not even the overflow counter
	NotLoaded             // RPC error: policies were never loaded
	Overloaded            // RPC error: too many checks at once
	Failed                // RPC error: the check failed inside
	Malformed             // RPC error: not a request about HTTP
	outcomes
)

func (o Outcome) String() string {
	return [...]string{
		"allowed", "refused", "refused_client", "no_policy", "no_limit", "uncounted",
		"not_loaded", "overloaded", "failed", "malformed",
	}[o]
}

// Metrics are the sidecar's counters. All methods are safe for concurrent use.
type Metrics struct {
	checks      [outcomes]prometheus.Counter
	Latency     prometheus.Histogram
	Propagation Propagation

	Reports       prometheus.Counter
	ReportBytes   prometheus.Counter
	ReportEntries prometheus.Counter
	ReportsFailed prometheus.Counter
	ReportsBusy   prometheus.Counter
	ReportsUrgent prometheus.Counter

	Batches       prometheus.Counter
	Records       prometheus.Counter
	PoliciesBad   prometheus.Counter
	StatusFailed  prometheus.Counter
	StoreFailed   prometheus.Counter
	SlotsFreed    prometheus.Counter
	ignored       *prometheus.CounterVec
	readErrors    *prometheus.CounterVec
	refusals      *prometheus.CounterVec
	degraded      *prometheus.GaugeVec
	decisionAge   *prometheus.GaugeVec
	decisionMax   *prometheus.GaugeVec
	policyVersion *prometheus.GaugeVec
}

// Propagation measures, in seconds, how long it takes until the decision in force includes a report: since the
// admission of its oldest unit, since that of its newest, and since it was handed to the producer.
type Propagation struct{ Oldest, Newest, Report prometheus.Observer }

// Sources are read when metrics are collected; nil ones are left out.
type Sources struct {
	// Slots in use, their bound, and the bytes of their identities.
	Slots func() (slots, capacity, identityBytes int)
	// Overflowed is how often a new counter found no room.
	Overflowed func() uint64
	// Known records, and those dropped at the bound.
	Known func() (records int, dropped uint64)
	// Ready and Degraded: 0 or 1.
	Ready, Degraded func() bool
}

// New registers the sidecar's metrics.
func New(reg prometheus.Registerer, s Sources) *Metrics {
	f := factory{reg}
	m := &Metrics{
		Latency: f.histogram("check_seconds", "Duration of a check inside the sidecar, one in 64 measured."),

		Reports:       f.counter("reports_total", "Usage reports handed to the producer."),
		ReportBytes:   f.counter("report_bytes_total", "Bytes of usage reports handed to the producer."),
		ReportEntries: f.counter("report_entries_total", "Counters in usage reports handed to the producer."),
		ReportsFailed: f.counter("reports_failed_total", "Usage reports that were not acknowledged; their counts travel in later ones."),
		ReportsBusy:   f.counter("reports_coalesced_total", "Flushes put off because an earlier report was not yet acknowledged."),
		ReportsUrgent: f.counter("reports_urgent_total", "Usage reports sent ahead of the flush period."),

		Batches:      f.counter("decision_batches_total", "Decision batches taken up."),
		Records:      f.counter("decision_records_total", "Decision records taken up."),
		PoliciesBad:  f.counter("policies_refused_total", "Policy versions refused; the last good one stays in force."),
		StatusFailed: f.counter("status_failed_total", "Status records that were not acknowledged."),
		StoreFailed:  f.counter("last_good_failed_total", "Failures to write the file of last good policies."),
		SlotsFreed:   f.counter("slots_freed_total", "Slots of idle counters given back."),

		ignored:       f.counters("decisions_ignored_total", "Decision batches and records ignored.", "reason"),
		readErrors:    f.counters("read_errors_total", "Failures to read a topic, each retried.", "topic"),
		refusals:      f.counters("limit_refusals_total", "Requests that a limit refused (enforced) or would have refused (shadow).", "policy", "limit", "mode"),
		degraded:      f.gauges("degraded_reason", "1 for each reason why the sidecar is degraded.", "reason"),
		decisionAge:   f.gauges("decision_age_seconds", "Age of the newest decision header when last looked at, each 250 ms; -1: none.", "partition"),
		decisionMax:   f.gauges("decision_age_max_seconds", "Largest age that the newest decision header reached in the last minute; -1: none yet.", "partition"),
		policyVersion: f.gauges("policy_version", "Version in force of each policy: its offset in the policy topic.", "policy"),
	}
	vec := f.counters("checks_total", "Checks by outcome.", "outcome")
	for o := range outcomes {
		m.checks[o] = vec.WithLabelValues(o.String())
	}
	propagation := f.histograms("propagation_seconds", "Time until the decision in force included a report: since the admission of its oldest unit, "+
		"since that of its newest unit, since the report was handed to the producer. A counter far below its limit may be reported each second only.", "since")
	m.Propagation = Propagation{
		Oldest: propagation.WithLabelValues("oldest"), Newest: propagation.WithLabelValues("newest"),
		Report: propagation.WithLabelValues("report"),
	}
	f.sources(s)
	return m
}

// Check counts one check.
func (m *Metrics) Check(o Outcome) { m.checks[o].Inc() }

// Ignored counts n decisions not taken up.
func (m *Metrics) Ignored(reason string, n int) {
	if n > 0 {
		m.ignored.WithLabelValues(reason).Add(float64(n))
	}
}

// ReadError counts a failure to read a topic.
func (m *Metrics) ReadError(topic string) { m.readErrors.WithLabelValues(topic).Inc() }

// Degraded sets the reasons in force.
func (m *Metrics) Degraded(reasons []string) {
	m.degraded.Reset()
	for _, r := range reasons {
		m.degraded.WithLabelValues(r).Set(1)
	}
}

// DecisionAge sets a partition's age and the largest of the last minute, seconds.
func (m *Metrics) DecisionAge(partition int32, seconds, largest float64) {
	label := strconv.Itoa(int(partition))
	m.decisionAge.WithLabelValues(label).Set(seconds)
	m.decisionMax.WithLabelValues(label).Set(largest)
}

// ForgetPartition drops a partition that is no longer read.
func (m *Metrics) ForgetPartition(partition int32) {
	label := strconv.Itoa(int(partition))
	m.decisionAge.DeleteLabelValues(label)
	m.decisionMax.DeleteLabelValues(label)
}

// PolicyVersions sets the versions in force, by policy key.
func (m *Metrics) PolicyVersions(versions map[string]int64) {
	m.policyVersion.Reset()
	for k, v := range versions {
		m.policyVersion.WithLabelValues(k).Set(float64(v))
	}
}

// LimitCounters are one limit's own.
type LimitCounters struct{ Refused, WouldRefuse prometheus.Counter }

// Limit returns a limit's counters, made once for each policy snapshot.
func (m *Metrics) Limit(policy, limit string) *LimitCounters {
	return &LimitCounters{
		Refused:     m.refusals.WithLabelValues(policy, limit, "enforced"),
		WouldRefuse: m.refusals.WithLabelValues(policy, limit, "shadow"),
	}
}

// ForgetLimit drops a limit that is in force no more.
func (m *Metrics) ForgetLimit(policy, limit string) {
	m.refusals.DeleteLabelValues(policy, limit, "enforced")
	m.refusals.DeleteLabelValues(policy, limit, "shadow")
}
