package scenario_test

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/weirproxy/weir/internal/policy"
	"github.com/weirproxy/weir/internal/simulate/scenario"
)

const (
	orders = `
apiVersion: weirproxy.dev/v1alpha1
kind: QuotaPolicy
metadata: {name: orders, namespace: shop}
spec:
  targetRefs: [{kind: Service, name: orders}]
  client: [{source: RemoteAddress}]
  limits:
  - {name: each, counters: [Client], rates: [{limit: 10, window: 1s}]}
  failure: {mode: Allow, staleAfter: 700ms}
`
	traffic = `
pods: 3
duration: 20s
traffic:
- {pods: all, clients: 50, requestsPerSecond: [{at: 0s, value: 30}]}
`
)

func TestAPolicyAndTrafficMakeAScenario(t *testing.T) {
	s, err := scenario.FromPolicy("orders.yaml", []byte(orders), "busy.yaml", []byte(traffic), assignments(t, "pods=4")...)
	if err != nil {
		t.Fatal(err)
	}
	if s.Name != "busy" || s.Single || s.Pods != 4 || s.SteadyFrom != 5*time.Second || s.Reference != nil {
		t.Errorf("%+v", s)
	}
	if p := s.Policy; len(p.Limits) != 1 || p.TargetRefs[0].Name != "orders" || p.Failure.Mode != "Allow" {
		t.Errorf("%+v", p)
	}
	if s.Timing.StaleAfter != 700*ms || *s.Policy.Failure.FallbackFloor != 0.5 {
		t.Errorf("%+v, floor %v", s.Timing, *s.Policy.Failure.FallbackFloor)
	}
	if got := s.Traffic[0].ClientName(49); got != "10.0.0.49" {
		t.Errorf("client %s: the policy knows them by address", got)
	}
	text := roundTrip(t, s)
	if !strings.Contains(string(text), "\npolicy:\n") {
		t.Errorf("%s", text)
	}
}

func TestWhatAPolicyAndTrafficMayNotBe(t *testing.T) {
	for name, c := range map[string]struct{ policy, traffic, want string }{
		"two policies":  {orders + "---" + strings.Replace(orders, "name: orders,", "name: b,", 1), traffic, "p: has 2 policies; give one: a run has one quota"},
		"no policy":     {"# none", traffic, "p: has 0 policies; give one: a run has one quota"},
		"no target":     {strings.Replace(orders, "  targetRefs: [{kind: Service, name: orders}]\n", "", 1), traffic, "p:5:1: spec.targetRefs: is empty; name what the policy attaches to, such as {kind: Service, name: orders}"},
		"a rate":        {orders, traffic + "rate: {limit: 1, window: 1s}", "t:6:1: rate: is not for a file of traffic; remove it: the quota is that of p"},
		"a policy":      {orders, traffic + "policy: {}", "t:6:1: policy: is not for a file of traffic; remove it: the quota is that of p"},
		"a reference":   {orders, traffic + "reference: {}", "t:6:1: reference: is not for a file of traffic; remove it: the quota is that of p"},
		"bad timing":    {strings.Replace(orders, ", staleAfter: 700ms", "", 1), traffic + "timing: {staleAfter: 1ms}", "t:6:10: timing.staleAfter: is 1ms; want 200ms to 1h"},
		"both say":      {orders, traffic + "timing: {staleAfter: 1s}", "t:6:10: timing.staleAfter: is 1s, but the policy's failure.staleAfter 700ms; remove one of them, or make them equal"},
		"no YAML":       {"{", "{", "p:1:1: no YAML: did not find expected node content\nt:1:1: no YAML: did not find expected node content"},
		"wrong in both": {strings.Replace(orders, "limit: 10", "limit: 0", 1), traffic + "runs: 0\nfaults: [{kind: LimitChange, at: 1s, limit: 5}]", "p:9:47: spec.limits[0].rates[0].limit: is missing or 0; want 1 or more; remove the service's route to refuse everything\nt:6:1: runs: is 0; want 1 to 10000"},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := scenario.FromPolicy("p", []byte(c.policy), "t", []byte(c.traffic))
			if err == nil || s != nil || err.Error() != c.want {
				t.Errorf("%v\nwant %s", err, c.want)
			}
			var list policy.Errors
			if !errors.As(err, &list) {
				t.Errorf("%T, want policy.Errors", err)
			}
		})
	}
}

// The timing's values hold where the policy says nothing, and both say the same then.
func TestTimingAndPolicyAgree(t *testing.T) {
	withPolicy := func(failure, timing string) string {
		return strings.Replace(least, "rate: {limit: 10, window: 1s}", "policy: {limits: [{name: a, rates: [{limit: 10, window: 1s}]}]"+failure+"}", 1) + timing
	}
	for name, c := range map[string]struct {
		text  string
		stale time.Duration
		floor float64
	}{
		"neither":        {least, 200 * ms, 0.5},
		"timing":         {least + "timing: {staleAfter: 1s, fallbackFloor: 0}", time.Second, 0},
		"timing, policy": {withPolicy("", "timing: {staleAfter: 1s, fallbackFloor: 0}"), time.Second, 0},
		"policy":         {withPolicy(", failure: {staleAfter: 2s, fallbackFloor: 1}", ""), 2 * time.Second, 1},
		"both":           {withPolicy(", failure: {staleAfter: 1s, fallbackFloor: 1}", "timing: {staleAfter: 1s, fallbackFloor: 1}"), time.Second, 1},
		"each one":       {withPolicy(", failure: {staleAfter: 1s}", "timing: {fallbackFloor: 1}"), time.Second, 1},
	} {
		s := parse(t, c.text)
		if f := s.Policy.Failure; s.Timing.StaleAfter != c.stale || f.StaleAfter.Duration != c.stale || s.Timing.FallbackFloor != c.floor || *f.FallbackFloor != c.floor {
			t.Errorf("%s: %+v and %v, %v", name, s.Timing, f.StaleAfter, *f.FallbackFloor)
		}
		roundTrip(t, s)
	}
}

// What the engine does first with a scenario is to compile its policy: that works for whatever parses.
func compiles(tb testing.TB, s *scenario.Scenario) {
	tb.Helper()
	docs, err := policy.Parse("p", []byte(orders))
	if err != nil {
		tb.Fatal(err)
	}
	docs[0].Spec = *s.Policy
	if _, err := policy.Compile(policy.Key{Name: "p"}, 1, docs[0], nil); err != nil {
		tb.Fatalf("no policy: %v", err)
	}
}

func TestPodsThatComeLaterCount(t *testing.T) {
	s := parse(t, least+"- {pods: [4], requestsPerSecond: [{at: 0s, value: 1}]}\nfaults:\n- {kind: PodsChange, at: 2s, pods: 5}\n- {kind: PodsChange, at: 3s, pods: 2}\n- {kind: PodsBelieved, at: 3s, pods: 9}")
	if s.MaxPods() != 5 || len(s.Traffic[0].Pods) != 5 || len(s.Traffic[0].Weights) != 5 {
		t.Errorf("%d at most, all: %v", s.MaxPods(), s.Traffic[0])
	}
	roundTrip(t, s)
}

func TestAPodsWeightIsItsPlaceInTheList(t *testing.T) {
	s := parse(t, least+"- {pods: [2, 0], skew: 1, requestsPerSecond: [{at: 0s, value: 1}]}")
	if got := s.Traffic[1]; got.Pods[0] != 2 || got.Weights[0] != 1 || got.Weights[1] != 0.5 {
		t.Errorf("%+v", got)
	}
}

func TestEveryExampleFieldIsInTheFile(t *testing.T) {
	data, err := os.ReadFile("testdata/every-field.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, field := range scenario.Fields() {
		name := strings.TrimSuffix(field[strings.LastIndexByte(field, '.')+1:], "[]")
		if !strings.Contains(string(data), name) {
			t.Errorf("testdata/every-field.yaml lacks %s", field)
		}
	}
}
