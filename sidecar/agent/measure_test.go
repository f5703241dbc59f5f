package agent

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/internal/bus"
	"github.com/weirproxy/weir/internal/quota"
)

// timed is a desk in virtual time whose reports wait for the test to acknowledge them.
type timed struct {
	*desk
	h      *hearing
	reg    *prometheus.Registry
	at     quota.Time
	offset int64
	done   func(bus.Ack)
}

func newTimed(t *testing.T) *timed {
	x := &timed{at: clockStart}
	x.desk, x.h = begun(t, each100, func(c *Config) { c.Clock = func() quota.Time { return x.at } })
	x.reg = x.desk.reg
	x.link = &link{sends: sendFunc(func(topic string, _ []byte, done func(bus.Ack)) {
		if topic == x.config.Topics.Usage {
			x.done = done
		}
	})}
	return x
}

func (x *timed) pass(d time.Duration) { x.at += quota.Time(d) }

// acknowledge takes the report under way into the log.
func (x *timed) acknowledge() {
	x.offset++
	x.done(bus.Ack{Offset: x.offset, Appended: x.appended})
	x.takePending()
}

// header arrives d after the one before it, and was appended as much later.
func (x *timed) header(d time.Duration, change func(*wirev1.Header)) {
	x.pass(d)
	x.appended = x.appended.Add(d - time.Millisecond) // hear adds one
	x.hear(x.h, func(b *wirev1.DecisionBatch) { change(b.Header) })
}

func (x *timed) gauge(name string) float64 {
	for _, m := range x.family(name) {
		return m.value
	}
	x.t.Fatalf("no %s", name)
	return 0
}

type sample struct {
	since string
	count uint64
	value float64 // a histogram's sum
}

func (x *timed) family(name string) (out []sample) {
	families, err := x.reg.Gather()
	if err != nil {
		x.t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != "weir_sidecar_"+name {
			continue
		}
		for _, m := range f.GetMetric() {
			s := sample{count: m.GetHistogram().GetSampleCount(), value: m.GetHistogram().GetSampleSum() + m.GetGauge().GetValue()}
			for _, l := range m.GetLabel() {
				if l.GetName() == "since" {
					s.since = l.GetValue()
				}
			}
			out = append(out, s)
		}
	}
	return out
}

func near(a, b float64) bool { return a-b < 1e-9 && b-a < 1e-9 }

// From the admission of a unit until a header that includes it is applied; one that renews nothing includes nothing.
func TestPropagationIsMeasuredUntilADecisionIncludesTheReport(t *testing.T) {
	x := newTimed(t)
	x.passes("a", 1)
	x.pass(30 * time.Millisecond)
	x.passes("a", 1)
	x.pass(20 * time.Millisecond)
	x.flush(x.at, true)
	x.pass(5 * time.Millisecond)
	x.acknowledge()
	reach := func(deferred bool) {
		x.header(15*time.Millisecond, func(h *wirev1.Header) { h.Watermark, h.Deferred = x.offset, deferred })
	}
	reach(true)
	for _, s := range x.family("propagation_seconds") {
		if s.count != 0 {
			t.Fatalf("%d measures before a header includes the report", s.count)
		}
	}
	reach(false)
	reach(false)
	want := map[string]float64{"oldest": 0.085, "newest": 0.055, "report": 0.035}
	for _, s := range x.family("propagation_seconds") {
		if s.count != 1 || !near(s.value, want[s.since]) {
			t.Errorf("since %s: %d measures, in all %v s, want one of %v", s.since, s.count, s.value, want[s.since])
		}
		delete(want, s.since)
	}
	if len(want) > 0 {
		t.Errorf("not measured: %v", want)
	}
}

// An outage between two looks at the metrics is seen in the largest age, for a minute.
func TestDecisionAgeRemembersAnOutage(t *testing.T) {
	x := newTimed(t)
	ages := func() (now, largest float64) {
		x.observe(x.at)
		return x.gauge("decision_age_seconds"), x.gauge("decision_age_max_seconds")
	}
	if now, largest := ages(); now != -1 || largest != -1 {
		t.Errorf("without a header the age is %v, the largest %v", now, largest)
	}
	x.header(25*time.Millisecond, func(*wirev1.Header) {})
	x.header(3*time.Second, func(*wirev1.Header) {})
	if now, largest := ages(); !near(now, 0) || !near(largest, 3) {
		t.Errorf("after an outage of 3 s the age is %v, the largest %v", now, largest)
	}
	for range 650 {
		x.header(100*time.Millisecond, func(*wirev1.Header) {})
	}
	x.pass(200 * time.Millisecond)
	if now, largest := ages(); !near(now, 0.2) || !near(largest, 0.2) {
		t.Errorf("a minute later the age is %v, the largest %v", now, largest)
	}
	if v := x.decisionsView(); v[0].MaxAgeMS == nil || !near(*v[0].MaxAgeMS, 200) {
		t.Errorf("/debug/decisions says %+v", v[0])
	}
}
