package sidecar

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/zap"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/internal/admin"
	"github.com/weirproxy/weir/internal/explain"
	"github.com/weirproxy/weir/internal/policy"
)

// Case 3 among others: a policy appears and is enforced; raised, lowered, spoiled and deleted, each in
// force without a restart, with the count kept.
func TestCase03PoliciesAppearChangeAndGo(t *testing.T) {
	i := newInstallation(t)
	s := start(t, configOf(t, i.kafka.Addr(), t.TempDir()))
	s.ready("partition")
	if got := s.passes("a", 5); got != 5 {
		t.Fatalf("without a policy %d of 5 pass", got)
	}

	s.inForce(i.policy(each(10, "1h")))
	if got := s.passes("a", 30); got != 10 {
		t.Errorf("%d of 30 pass a limit of 10", got)
	}
	s.inForce(i.policy(each(25, "1h")))
	if got := s.passes("a", 30); got != 15 {
		t.Errorf("raised to 25, %d more pass, want 15", got)
	}
	s.inForce(i.policy(each(5, "1h")))
	if got := s.passes("a", 10); got != 0 {
		t.Errorf("lowered to 5, %d more pass, want 0", got)
	}
	if got := s.passes("b", 10); got != 5 {
		t.Errorf("another client passes %d, want 5", got)
	}

	good := i.policy(each(7, "1h"))
	s.inForce(good)
	i.publish(policyKey, &wirev1.PolicyMessage{Body: &wirev1.PolicyMessage_Policy{Policy: &wirev1.Policy{
		SchemaVersion: policy.SchemaVersion, Origin: "file", Namespace: "shop", Name: "orders",
		Document: []byte(`{"apiVersion": "weirproxy.dev/v1alpha1", "kind": "QuotaPolicy", "spec": {"limitz": 3}}`),
	}}})
	eventually(t, "the refusal of the bad version is told", func() bool {
		return strings.Contains(strings.Join(s.State().Texts(), "\n"), policyKey)
	})
	s.inForce(good)
	if got := s.passes("c", 10); got != 7 {
		t.Errorf("after a bad edit %d pass, want the last good 7", got)
	}
	eventually(t, "the status record names the bad version", func() bool {
		return locked(i, func() bool {
			for _, p := range i.status.GetPolicies() {
				if p.GetKey() == policyKey && p.GetVersion() == good && p.GetSeen() == good+1 && p.GetError() != "" {
					return true
				}
			}
			return false
		})
	})

	i.publish(policyKey, nil)
	eventually(t, "the deletion is in force", func() bool { return s.passes("c", 1) == 1 })
}

// Usage reaches the owner whole: what is in flight and what no flush has seen is sent on SIGTERM, and the pod
// leaves the status topic.
func TestStoppingLosesNothing(t *testing.T) {
	i := newInstallation(t)
	s := start(t, configOf(t, i.kafka.Addr(), ""))
	s.inForce(i.policy(each(1_000_000, "1h")))
	s.ready("partition")
	for n := range 20 {
		s.passes(fmt.Sprint("client", n), 10+n)
	}
	if err := s.end(); err != nil {
		t.Fatal(err)
	}
	for n := range 20 {
		name := fmt.Sprintf("each client%d", n)
		eventually(t, "all of "+name+" is counted", func() bool { return i.totalOf(name) >= uint64(10+n) })
		if got := i.totalOf(name); got != uint64(10+n) {
			t.Errorf("%s: %d counted, want %d", name, got, 10+n)
		}
	}
	eventually(t, "the tombstone", func() bool { return locked(i, func() bool { return i.tombstone }) })
}

// What the owner says is in force on a counter's very first request, although the pod never saw it before.
func TestABlockedCounterIsBlockedFromItsFirstRequest(t *testing.T) {
	i := newInstallation(t)
	version := i.policy(each(100, "1h"))
	c := configOf(t, i.kafka.Addr(), "")
	s := start(t, c)
	s.inForce(version)
	s.ready("partition")
	var out explain.Response
	if err := s.admin.Post(t.Context(), explain.Path, explain.Request{
		Method: "GET", Path: "/orders/7", Headers: map[string][]string{"X-Client": {"greedy"}},
	}, &out); err != nil {
		t.Fatal(err)
	}
	if !out.Allowed || len(out.Counters) != 1 {
		t.Fatalf("explained: %+v", out)
	}
	id, err := wirev1.ParseID(out.Counters[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	locked(i, func() any {
		i.records = append(i.records, &wirev1.Record{
			IdHi: id.Hi, IdLo: id.Lo, PolicyVersion: version, Amount: 100, Rate: 100. / 3600, Remaining: -3, Content: 103,
			ShareSum: 1, Epsilon: 1, BlockedForMs: 1_800_000,
		})
		return nil
	})
	eventually(t, "the record is known", func() bool {
		var out explain.Response
		if err := s.admin.Post(t.Context(), explain.Path, explain.Request{Headers: map[string][]string{"x-client": {"greedy"}}}, &out); err != nil {
			t.Fatal(err)
		}
		return !out.Allowed && out.RefusedBy == "shop/orders/each" && out.Counters[0].Basis == "Decision"
	})
	if got := s.passes("greedy", 1); got != 0 {
		t.Error("the first request of a blocked counter passed")
	}
	if got := s.passes("modest", 1); got != 1 {
		t.Error("another client is refused")
	}

	c = configOf(t, i.kafka.Addr(), "") // a pod that comes later reads what was said in the last seconds
	c.Pod = "orders-2"
	later := start(t, c)
	later.inForce(version)
	later.ready("partition")
	if got := later.passes("greedy", 1); got != 0 {
		t.Error("the first request on a new pod passed")
	}
}

// The watermark says which reports a decision includes: what it includes is not subtracted again.
func TestADecisionThatIncludesAReportIsNotChargedForItTwice(t *testing.T) {
	i := newInstallation(t)
	version := i.policy(each(100, "1h"))
	s := start(t, configOf(t, i.kafka.Addr(), ""))
	s.inForce(version)
	s.ready("partition")
	if got := s.passes("a", 60); got != 60 {
		t.Fatalf("%d pass", got)
	}
	eventually(t, "the owner has counted all", func() bool { return i.totalOf("each a") == 60 })
	locked(i, func() any {
		i.frozen = true
		for id := range i.identity {
			i.records = append(i.records, &wirev1.Record{
				IdHi: id.Hi, IdLo: id.Lo, PolicyVersion: version, Amount: 100, Rate: 100. / 3600, Remaining: 40, Content: 60,
				Demand: 1, ShareSum: 1, Epsilon: 1,
			})
		}
		return nil
	})
	var last explain.Counter
	eventually(t, "the decision is in force and includes all", func() bool {
		var out explain.Response
		if err := s.admin.Post(t.Context(), explain.Path, explain.Request{Headers: map[string][]string{"x-client": {"a"}}}, &out); err != nil {
			t.Fatal(err)
		}
		last = out.Counters[0]
		return last.Basis == "Decision" && last.Remaining > 35
	})
	if got := s.passes("a", 100); got < 35 || got > 42 {
		t.Errorf("%d more pass of the 40 left (%+v)", got, last)
	}
}

// Cases 16, 17: brokers go away. Checks are answered as before, from local memory; the end comes within its
// deadline.
func TestCase16Case17WithoutBrokersChecksGoOnAndTheEndComes(t *testing.T) {
	i := newInstallation(t)
	c := configOf(t, i.kafka.Addr(), t.TempDir())
	c.Grace = 2 * time.Second
	s := start(t, c)
	s.inForce(i.policy(each(50, "1h")))
	s.ready("partition")
	if got := s.passes("a", 20); got != 20 {
		t.Fatalf("%d pass", got)
	}
	i.stop()
	if got := s.passes("a", 60); got != 30 {
		t.Errorf("without brokers %d more pass, want 30", got)
	}
	eventually(t, "the sidecar says that it enforces alone", func() bool {
		return s.State().Degraded && strings.Contains(strings.Join(s.State().Texts(), "\n"), "partition")
	})
	if got := s.passes("b", 60); got > 50 {
		t.Errorf("a new client passes %d of a limit of 50", got)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.end() }()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(patience):
		t.Fatal("it does not end without brokers")
	}
}

// Brokers that hold their connections open and answer nothing are worse than brokers that are gone: no request
// fails by itself.
func TestCase17FrozenBrokersDoNotHoldUpTheEnd(t *testing.T) {
	i := newInstallation(t)
	c := configOf(t, i.kafka.Addr(), t.TempDir())
	c.Grace = 2 * time.Second
	s := start(t, c)
	s.inForce(i.policy(each(50, "1h")))
	s.ready("partition")
	i.kafka.Cluster().Control(func(kmsg.Request) (kmsg.Response, error, bool) {
		i.kafka.Cluster().KeepControl()
		return nil, nil, true // taken, and never answered
	})
	if got := s.passes("a", 60); got != 50 {
		t.Errorf("%d pass, want 50", got)
	}
	began := time.Now()
	ended := make(chan error, 1)
	go func() { ended <- s.end() }()
	select {
	case err := <-ended:
		t.Logf("ended after %v", time.Since(began))
		if err != nil {
			t.Error(err)
		}
	case <-time.After(patience):
		t.Fatal("it does not end while brokers are frozen")
	}
}

// A restart while Kafka is away begins with the last good policies and the number of pods.
func TestARestartWithoutKafkaEnforcesTheLastGoodPolicies(t *testing.T) {
	i := newInstallation(t)
	dir := t.TempDir()
	c := configOf(t, i.kafka.Addr(), dir)
	c.Grace = time.Second
	c.ReadyAfter = 50 * time.Millisecond
	s := start(t, c)
	s.inForce(i.policy(each(10, "1h")))
	s.ready("partition", "live pods")
	if err := s.end(); err != nil {
		t.Fatal(err)
	}
	i.stop()

	again := start(t, c)
	if got := again.passes("a", 30); got != 10 {
		t.Errorf("%d of 30 pass the last good limit of 10", got)
	}
	again.ready()
	if state := again.State(); !state.Degraded || !strings.Contains(strings.Join(state.Texts(), "\n"), "Kafka") {
		t.Errorf("state = %+v", state)
	}
	if v, err := again.agent.Policies(t.Context()); err != nil || len(v.Targets) != 1 || v.Targets[0].LivePods != 1 {
		t.Errorf("targets = %+v, %v", v.Targets, err)
	}
	_ = again.end()

	if err := os.WriteFile(c.statePath(), []byte("{damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	damaged := start(t, c)
	if _, err := damaged.check("a"); status.Code(err) != codes.Unavailable {
		t.Errorf("with neither file nor Kafka: %v, want UNAVAILABLE", err)
	}
	_ = damaged.end()
}

// Identities travel again when the owner asks, and headers' periods and pods are heard.
func TestTheOwnerGetsAnIdentityItAsksFor(t *testing.T) {
	i := newInstallation(t)
	s := start(t, configOf(t, i.kafka.Addr(), ""))
	s.inForce(i.policy(each(100, "1h")))
	s.ready("partition", "live pods")
	s.passes("a", 3)
	eventually(t, "the usage is counted", func() bool { return i.totalOf("each a") == 3 })
	before := locked(i, func() int {
		for id := range i.identity {
			i.wanted = append(i.wanted, &wirev1.CounterID{Hi: id.Hi, Lo: id.Lo})
		}
		return len(i.reports)
	})
	eventually(t, "a report with the identity", func() bool {
		return locked(i, func() bool {
			for _, r := range i.reports[before:] {
				for _, target := range r.GetTargets() {
					for _, e := range target.GetEntries() {
						if len(e.GetIdentity()) > 0 && e.GetCumulative() == 3 {
							return true
						}
					}
				}
			}
			return false
		})
	})
	if got := i.totalOf("each a"); got != 3 {
		t.Errorf("the repeated report counted: %d", got)
	}
}

func TestAnotherIdentityKeyIsSaidAndTrustedNowhere(t *testing.T) {
	i := newInstallation(t)
	c := configOf(t, i.kafka.Addr(), "")
	c.IdentityKey = []byte(strings.Repeat("x", wirev1.KeySize))
	s := start(t, c)
	eventually(t, "the mismatch is said with its remedy", func() bool {
		return strings.Contains(strings.Join(s.State().Texts(), "\n"), "identityKeyFile")
	})
}

func TestDebugShowsWhatIsBelieved(t *testing.T) {
	i := newInstallation(t)
	s := start(t, configOf(t, i.kafka.Addr(), ""))
	version := i.policy(`[{name: each, counters: [Client], rates: [{limit: 100, window: 1h}]}]`)
	s.inForce(version)
	s.ready("partition")
	for n := range 5 {
		s.passes(fmt.Sprint("client", n), n+1)
	}
	for path, want := range map[string]string{
		"/debug/counters?n=2&limit=shop/orders/each": `"total": 5`,
		"/debug/policies":  policyKey,
		"/debug/decisions": `"inForce": true`,
		"/readyz":          `"ready": true`,
		"/metrics":         `weir_sidecar_checks_total{outcome="allowed"} 15`,
	} {
		code, body, err := s.admin.Get(t.Context(), path)
		if err != nil || code != 200 || !strings.Contains(string(body), want) {
			t.Errorf("%s: %d %v\n%s", path, code, err, body)
		}
	}
	if code, _, _ := s.admin.Get(t.Context(), "/debug/counters?n=1000000"); code != 400 {
		t.Errorf("an unbounded question is answered with %d", code)
	}
	eventually(t, "a status record", func() bool { return locked(i, func() bool { return i.status != nil }) })
	st := locked(i, func() *wirev1.PodStatus { return proto.CloneOf(i.status) })
	if st.GetPod() != "shop/orders-1" || st.GetKeyFingerprint() != i.keys.Fingerprint() {
		t.Errorf("status = %v", st)
	}
}

// Case 23: the socket of a sidecar that lives is not taken away from it.
func TestCase23TheSocketOfALiveSidecarIsRefused(t *testing.T) {
	c := configOf(t, "127.0.0.1:1", "")
	c.Grace = 500 * time.Millisecond
	first := start(t, c)
	if _, err := first.check("a"); status.Code(err) != codes.Unavailable {
		t.Fatalf("%v: without policies it is UNAVAILABLE, by an answer", err)
	}
	second := c
	second.Admin = admin.Config{}
	s, err := New(second, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "check.sock") {
		t.Errorf("a second sidecar on the socket: %v", err)
	}
	if _, err := first.check("a"); status.Code(err) != codes.Unavailable {
		t.Errorf("the first answers no more: %v", err)
	}
}

func TestConfigSaysAllThatIsWrong(t *testing.T) {
	err := Config{Listen: "nowhere", Targets: []string{"x"}, OwnerKind: "Deployment"}.Validate()
	for _, want := range []string{"brokers", "listen", "pod:", "owner's kind", `target "x"`, "identityKeyFile"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not speak of %s", err, want)
		}
	}
}
