package metrics

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

func exercised() (*prometheus.Registry, *Metrics) {
	reg := prometheus.NewRegistry()
	m := New(reg, Sources{
		Slots: func() (int, int, int) { return 1, 2, 3 }, Overflowed: func() uint64 { return 4 },
		Known: func() (int, uint64) { return 5, 6 }, Ready: func() bool { return true }, Degraded: func() bool { return false },
	})
	m.Check(Refused)
	m.Ignored("malformed", 2)
	m.Ignored("malformed", 0)
	m.ReadError("weir.policies")
	m.Degraded([]string{"kafka"})
	m.DecisionAge(3, 0.5, 2)
	m.Propagation.Oldest.Observe(0.08)
	m.PolicyVersions(map[string]int64{"file/shop/orders": 7})
	m.Limit("shop/orders", "each").Refused.Inc()
	return reg, m
}

func TestNamesFollowPrometheusAndLabelsAreBounded(t *testing.T) {
	reg, _ := exercised()
	problems, err := testutil.GatherAndLint(reg)
	if err != nil || len(problems) > 0 {
		t.Errorf("%v %v", problems, err)
	}
	known := map[string]bool{"outcome": true, "reason": true, "topic": true, "policy": true, "limit": true, "mode": true, "partition": true, "since": true}
	families, _ := reg.Gather()
	for _, f := range families {
		if !strings.HasPrefix(f.GetName(), "weir_sidecar_") {
			t.Errorf("%s is not the sidecar's", f.GetName())
		}
		for _, l := range f.GetMetric()[0].GetLabel() {
			if !known[l.GetName()] {
				t.Errorf("%s has label %s: what a request carries is no label (case 18)", f.GetName(), l.GetName())
			}
		}
	}
}

func TestWhatIsGoneLeavesNoSeries(t *testing.T) {
	reg, m := exercised()
	m.ForgetLimit("shop/orders", "each")
	m.ForgetPartition(3)
	m.Degraded(nil)
	m.PolicyVersions(nil)
	for _, name := range []string{"limit_refusals_total", "decision_age_seconds", "decision_age_max_seconds", "degraded_reason", "policy_version"} {
		if n, err := testutil.GatherAndCount(reg, "weir_sidecar_"+name); n != 0 || err != nil {
			t.Errorf("%s: %d series left, %v", name, n, err)
		}
	}
}
