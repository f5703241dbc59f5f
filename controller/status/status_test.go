package status

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weirproxy/weir/api/v1alpha1"
	"github.com/weirproxy/weir/api/v1alpha1/kube"
	"github.com/weirproxy/weir/controller/fleet"
	"github.com/weirproxy/weir/controller/publish"
	"github.com/weirproxy/weir/internal/policy"
)

const target = "shop/Service/orders"

func noon() time.Time { return time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC) }

// facts are those of a policy at generation 4, which is version 40 in the topic, with these pods.
func facts(pods ...Pod) Facts {
	return Facts{
		Generation: 4,
		Spec: &v1alpha1.QuotaPolicySpec{
			TargetRefs: []v1alpha1.TargetRef{{Kind: "Service", Name: "orders"}, {Kind: "Deployment", Name: "api"}},
			Limits:     []v1alpha1.Limit{{Name: "each-client"}, {Name: "daily"}},
		},
		Published: publish.Published{Known: true, Version: 40, Generation: 4},
		Pods:      pods,
	}
}

func (f Facts) with(change func(*Facts)) Facts {
	change(&f)
	return f
}

// pod is one that enforces generation 4.
func pod(name string, change ...func(*Pod)) Pod {
	p := Pod{Name: name, Targets: []string{target}, Sidecar: true, Report: &fleet.Report{
		Version: 40, Seen: 40, Generation: 4, Targets: []string{"shop/Deployment/orders", target},
	}}
	for _, f := range change {
		f(&p)
	}
	return p
}

func without(p *Pod)    { p.Sidecar, p.Report = false, nil }
func isDown(p *Pod)     { p.Down = true }
func isGoing(p *Pod)    { p.Leaving = true }
func isWaiting(p *Pod)  { p.Waiting = true }
func unheardOf(p *Pod)  { p.Report = nil }
func isStale(p *Pod)    { p.Report.Stale = true }
func isFormer(p *Pod)   { p.Report.Former = true }
func isDegraded(p *Pod) { p.Report.Degraded = true }
func isForeign(p *Pod)  { p.Report.Foreign = true }
func isAnother(p *Pod)  { p.Report.Targets = []string{"shop/Deployment/orders"} }
func lags(p *Pod)       { p.Report.Version, p.Report.Seen, p.Report.Generation = 30, 30, 3 }
func hasNone(p *Pod)    { p.Report.Version, p.Report.Seen, p.Report.Generation = -1, -1, 0 }
func refuses(p *Pod) {
	lags(p)
	p.Report.Seen, p.Report.Error = 40, "schema version 2, this program knows 1"
}

// isOld is a sidecar of a release that does not say generations.
func isOld(p *Pod) { p.Report.Generation = 0 }

func each(changes ...func(*Pod)) func(*Pod) {
	return func(p *Pod) {
		for _, f := range changes {
			f(p)
		}
	}
}

// Case 25: a status never says that a policy is enforced where it is not. Each row: what is so, and what the
// status says of it. "T", "F" and "?" are a condition's status.
func TestStatus(t *testing.T) {
	invalid := func(f *Facts) { f.Generation, f.Invalid = 5, "spec.limits[0].rates[0].limit: is -6; want 1 to …" }
	away := func(f *Facts) { f.Generation, f.NotPublished = 5, "Kafka does not take it: no broker" }
	unread := func(f *Facts) {
		f.Published, f.NotPublished, f.Deaf = publish.Published{Unread: true}, "Kafka has not answered yet", "Kafka has not answered yet"
	}
	deaf := func(f *Facts) { f.Deaf = "no broker answers" }
	for _, c := range []struct {
		what       string
		facts      Facts
		accepted   string
		programmed string
		pods       string // enforcing/total
		oldest     int64
		says       string // in the message of Programmed
	}{
		{"every pod enforces it", facts(pod("a"), pod("b"), pod("c")), "T Accepted", "T Programmed", "3/3", 4, "generation 4 is enforced in all of 3 pods"},
		{"no pod runs", facts(), "T Accepted", "F Pending", "0/0", 0, "no pod of the targets runs"},
		{"it was published a moment ago", facts(pod("a", lags), pod("b", lags)), "T Accepted", "F Pending", "0/2", 3, "enforced in 0 of 2 pods; a, b: an older version is in force"},
		{"new pods, to which it is the first", facts(pod("a", hasNone)), "T Accepted", "F Pending", "0/1", 0, "a: an older version"},

		{"a pod lags", facts(pod("a"), pod("b", lags)), "T Accepted", "F PartiallyProgrammed", "1/2", 3, "enforced in 1 of 2 pods; b: an older version is in force"},
		{"a pod has no sidecar", facts(pod("a"), pod("b", without)), "T Accepted", "F PartiallyProgrammed", "1/2", 4, "b: no sidecar"},
		{"a pod's sidecar does not run", facts(pod("a"), pod("b", isDown)), "T Accepted", "F PartiallyProgrammed", "1/2", 4, "b: the sidecar does not run"},
		{"a pod's sidecar has not reported", facts(pod("a"), pod("b", unheardOf)), "T Accepted", "F PartiallyProgrammed", "1/2", 4, "b: the sidecar has not reported yet"},
		{"a pod restarted: what it said before counts no more", facts(pod("a"), pod("b", isFormer)), "T Accepted", "F PartiallyProgrammed", "1/2", 4, "b: the sidecar has not reported yet"},
		{"a pod is cut off", facts(pod("a"), pod("b", isStale)), "T Accepted", "F PartiallyProgrammed", "1/2", 4, "b: silent for more than 30 s"},
		{"a pod is cut off with what was before", facts(pod("a"), pod("b", each(lags, isStale))), "T Accepted", "F PartiallyProgrammed", "1/2", 3, "b: silent"},
		{"a pod has another identity key", facts(pod("a"), pod("b", isForeign)), "T Accepted", "F PartiallyProgrammed", "1/2", 4, "b: the sidecar has another identity key"},
		{"a pod refuses it", facts(pod("a"), pod("b", refuses)), "T Accepted", "F PartiallyProgrammed", "1/2", 3, "b: the sidecar refuses the new version: schema version 2"},
		{"a pod counts for other targets", facts(pod("a"), pod("b", isAnother)), "T Accepted", "F PartiallyProgrammed", "1/2", 4, "b: the sidecar counts for other targets"},
		{"a pod has the version of a topic that is no more", facts(pod("a"), pod("b", func(p *Pod) { p.Report.Generation = 9 })), "T Accepted", "F PartiallyProgrammed", "1/2", 4, "b: an older version"},

		{"a pod enforces it without the others", facts(pod("a"), pod("b", isDegraded)), "T Accepted", "T Programmed", "2/2", 4, "generation 4 is enforced in all of 2 pods; degraded in 1 of 2 pods, perhaps"},
		{"many do", facts(pod("a", isDegraded), pod("b", isDegraded), pod("c", isDegraded), pod("d", isDegraded), pod("e", lags)), "T Accepted", "F PartiallyProgrammed", "4/5", 3, "says why): a, b, c and 1 more; e: an older version is in force"},
		{"one that lags is degraded, too", facts(pod("a"), pod("b", each(lags, isDegraded))), "T Accepted", "F PartiallyProgrammed", "1/2", 3, "enforced in 1 of 2 pods; b: an older version is in force"},
		{"a pod is going", facts(pod("a"), pod("b", each(lags, isGoing))), "T Accepted", "T Programmed", "1/1", 4, "all of 1 pod"},
		{"a pod has not started", facts(pod("a"), pod("b", each(without, isWaiting))), "T Accepted", "T Programmed", "1/1", 4, ""},
		{"a pod's sidecar reports before the kubelet does", facts(pod("a"), pod("b", each(lags, isWaiting))), "T Accepted", "F PartiallyProgrammed", "1/2", 3, "b:"},
		{"a pod has not started, another of its name was heard long ago", facts(pod("a"), pod("b", each(isWaiting, isStale))), "T Accepted", "T Programmed", "1/1", 4, ""},
		{"a pod has not started, another of its name was heard before", facts(pod("a"), pod("b", each(isWaiting, isFormer))), "T Accepted", "T Programmed", "1/1", 4, ""},
		{"a pod that two targets select is one", facts(pod("a"), pod("a")), "T Accepted", "T Programmed", "1/1", 4, ""},
		{"a pod that two targets select must charge both", facts(pod("a"), pod("a", func(p *Pod) { p.Targets = []string{"shop/Deployment/api"} })), "T Accepted", "F Pending", "0/1", 0, "a: the sidecar counts for other targets"},
		{"sidecars too old to say generations", facts(pod("a", isOld), pod("b", isOld)), "T Accepted", "T Programmed", "2/2", 4, ""},

		{"it is invalid: the last good one stays", facts(pod("a"), pod("b")).with(invalid), "F Invalid", "F Pending", "0/2", 4, "generation 5 is invalid; generation 4 stays in force, in 2 of 2 pods"},
		{"it is invalid, and was never good", facts(pod("a", hasNone)).with(invalid).with(func(f *Facts) { f.Published = publish.Published{} }), "F Invalid", "F Pending", "0/1", 0, "nothing of this policy is in force"},
		{"Kafka is away", facts(pod("a"), pod("b")).with(away), "T Accepted", "F Pending", "0/2", 4, "generation 5 cannot be published: Kafka does not take it: no broker; generation 4 stays in force, in 2 of 2 pods"},
		{"its record is not this controller's", facts(pod("a")).with(func(f *Facts) { f.Published.Generation = 0 }), "T Accepted", "F Pending", "0/1", 4, "not published yet; what was published before stays in force"},
		{"no topic has been read yet", facts(pod("a", unheardOf)).with(unread), "T Accepted", "? Pending", "0/1", 0, "what is in force is not known; a: the sidecar has not reported yet; sidecars cannot be heard now: Kafka has not answered yet"},
		{"sidecars cannot be heard", facts(pod("a", isStale), pod("b")).with(deaf), "T Accepted", "? PartiallyProgrammed", "1/2", 4, "sidecars cannot be heard now: no broker answers"},
		{"sidecars cannot be heard, and one is not there", facts(pod("a", isStale), pod("b", without)).with(deaf), "T Accepted", "F Pending", "0/2", 4, "b: no sidecar"},
		{"sidecars cannot be heard since a moment ago", facts(pod("a")).with(deaf), "T Accepted", "T Programmed", "1/1", 4, ""},

		{"a target is not there", facts(pod("a")).with(func(f *Facts) { f.Missing = []string{"there is no Deployment/api in namespace shop"} }), "F TargetNotFound", "T Programmed", "1/1", 4, ""},
		{"a file has a policy of the name", facts(pod("a")).with(func(f *Facts) {
			f.Published.Others = []policy.Key{{Origin: policy.OriginFile, Namespace: "shop", Name: "orders"}}
		}), "T Conflicted", "T Programmed", "1/1", 4, ""},
	} {
		t.Run(c.what, func(t *testing.T) {
			s := Make(c.facts, kube.QuotaPolicyStatus{}, noon())
			if got := shown(s, kube.ConditionAccepted); got != c.accepted {
				t.Errorf("Accepted is %s, want %s", got, c.accepted)
			}
			if got := shown(s, kube.ConditionProgrammed); got != c.programmed {
				t.Errorf("Programmed is %s, want %s", got, c.programmed)
			}
			if s.Pods.Ratio != c.pods || s.Pods.Ratio != fmt.Sprintf("%d/%d", s.Pods.Enforcing, s.Pods.Total) {
				t.Errorf("pods %+v, want %s", s.Pods, c.pods)
			}
			if s.Pods.OldestGeneration != c.oldest {
				t.Errorf("the oldest generation is %d, want %d", s.Pods.OldestGeneration, c.oldest)
			}
			if m := condition(s, kube.ConditionProgrammed).Message; !strings.Contains(m, c.says) {
				t.Errorf("it says %q, want %q", m, c.says)
			}
		})
	}
}

func condition(s kube.QuotaPolicyStatus, kind string) metav1.Condition {
	for _, c := range s.Conditions {
		if c.Type == kind {
			return c
		}
	}
	return metav1.Condition{}
}

func shown(s kube.QuotaPolicyStatus, kind string) string {
	c := condition(s, kind)
	mark := map[metav1.ConditionStatus]string{metav1.ConditionTrue: "T", metav1.ConditionFalse: "F", metav1.ConditionUnknown: "?"}[c.Status]
	return mark + " " + c.Reason
}

func TestWhatKubectlShows(t *testing.T) {
	s := Make(facts(pod("a")), kube.QuotaPolicyStatus{}, noon())
	if s.Targets != "Service/orders,Deployment/api" || s.Limits != "each-client,daily" {
		t.Errorf("columns %q and %q", s.Targets, s.Limits)
	}
	f := facts().with(func(f *Facts) {
		for range 60 {
			f.Spec.Limits = append(f.Spec.Limits, v1alpha1.Limit{Name: strings.Repeat("ü", 60)})
		}
	})
	if s := Make(f, s, noon()); len(s.Limits) > longestColumn || !strings.HasSuffix(s.Limits, "ü…") {
		t.Errorf("a long column has %d bytes: %q", len(s.Limits), s.Limits[len(s.Limits)-20:])
	}
}

func TestPodsAreNamedInOrderAndFew(t *testing.T) {
	var all []Pod
	for i := 11; i >= 0; i-- {
		all = append(all, pod(fmt.Sprintf("w%02d", i), without), pod(fmt.Sprintf("l%02d", i), lags))
	}
	s := Make(facts(all...), kube.QuotaPolicyStatus{}, noon())
	if p := s.Pods; p.WithoutSidecar != 12 || len(p.Lagging) != kube.MaxNamedPods || len(p.WithoutSidecarNames) != kube.MaxNamedPods ||
		p.Lagging[0] != "l00" || p.Lagging[9] != "l09" || p.WithoutSidecarNames[9] != "w09" {
		t.Errorf("pods %+v", p)
	}
	if m := condition(s, kube.ConditionProgrammed).Message; !strings.Contains(m, "l00, l01, l02 and 9 more: an older version") {
		t.Errorf("it says %q", m)
	}
}

// The time of a condition moves when it turns, and then alone.
func TestTransitionTimes(t *testing.T) {
	at := func(s kube.QuotaPolicyStatus, kind string) time.Duration {
		return condition(s, kind).LastTransitionTime.Sub(noon())
	}
	s := Make(facts(pod("a", lags)), kube.QuotaPolicyStatus{}, noon())
	partly := Make(facts(pod("a", lags), pod("b")), s, noon().Add(time.Minute))
	if at(partly, kube.ConditionProgrammed) != 0 || condition(partly, kube.ConditionProgrammed).Reason != kube.ReasonPartiallyProgrammed {
		t.Errorf("another reason moved the time: %+v", partly.Conditions)
	}
	done := Make(facts(pod("a"), pod("b")), partly, noon().Add(2*time.Minute+time.Millisecond))
	if at(done, kube.ConditionProgrammed) != 2*time.Minute || at(done, kube.ConditionAccepted) != 0 {
		t.Errorf("conditions %+v", done.Conditions)
	}
}

// After a controller's restart nothing is remembered but the last status. A pod that says its generation is taken at its
// word; of one that is too old to say it, what the last status knew is said, and nothing where it knew nothing.
func TestTheOldestGenerationOutlivesTheController(t *testing.T) {
	older := each(lags, isOld)
	for what, c := range map[string]struct {
		pods   []Pod
		before int64
		want   int64
	}{
		"pods that say it":                         {[]Pod{pod("a"), pod("b", lags)}, 0, 3},
		"one that cannot say, and a status before": {[]Pod{pod("a"), pod("b", older)}, 2, 2},
		"one that cannot say, and no status":       {[]Pod{pod("a"), pod("b", older)}, 0, 0},
		"one that has the newest version":          {[]Pod{pod("a", isOld)}, 2, 4},
	} {
		before := kube.QuotaPolicyStatus{Pods: &kube.PodsStatus{OldestGeneration: c.before}}
		if got := Make(facts(c.pods...), before, noon()).Pods.OldestGeneration; got != c.want {
			t.Errorf("%s: %d, want %d", what, got, c.want)
		}
	}
}

// Conditions that others put into the status stay, as many as there is room for.
func TestConditionsOfOthersStay(t *testing.T) {
	var before kube.QuotaPolicyStatus
	for i := range 8 {
		before.Conditions = append(before.Conditions, metav1.Condition{Type: fmt.Sprintf("example.com/%d", i), Status: metav1.ConditionTrue})
	}
	s := Make(facts(pod("a")), before, noon())
	if len(s.Conditions) != 8 || condition(s, "example.com/5").Status == "" || len(before.Conditions) != 8 {
		t.Errorf("conditions %+v", s.Conditions)
	}
	again := Make(facts(pod("a")), s, noon().Add(time.Hour))
	if !slices.Equal(again.Conditions, s.Conditions) || s.Conditions[0].Type != kube.ConditionAccepted {
		t.Errorf("conditions %+v, then %+v", s.Conditions, again.Conditions)
	}
}

func TestWhatIsMissingIsSaid(t *testing.T) {
	f := facts().with(func(f *Facts) { f.Missing = []string{"there is no Service/orders", "there is no Deployment/api"} })
	m := condition(Make(f, kube.QuotaPolicyStatus{}, noon()), kube.ConditionAccepted).Message
	if m != "there is no Deployment/api; there is no Service/orders; the policy holds once they are there" {
		t.Errorf("it says %q", m)
	}
	f.Missing = f.Missing[:1]
	if m := condition(Make(f, kube.QuotaPolicyStatus{}, noon()), kube.ConditionAccepted).Message; !strings.HasSuffix(m, "the policy holds for its other targets") {
		t.Errorf("it says %q", m)
	}
	f.Invalid = strings.Repeat("x", 2*longestMessage)
	if m := condition(Make(f, kube.QuotaPolicyStatus{}, noon()), kube.ConditionAccepted).Message; len(m) > longestMessage {
		t.Errorf("a message of %d bytes", len(m))
	}
}
