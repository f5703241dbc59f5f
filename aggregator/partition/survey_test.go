package partition

import (
	"fmt"
	"strings"
	"testing"
	"time"

	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/internal/policy"
)

// surveyed walks the whole partition, step by step.
func (w *world) surveyed(t *testing.T, counters int) (views []LimitView, steps int) {
	t.Helper()
	s := NewSurvey(counters)
	for done := false; !done; steps++ {
		if views, done = w.own.Survey(s, w.now); steps > 1000 {
			t.Fatal("the survey has no end")
		}
	}
	return views, steps
}

func TestASurveyFindsTheFullestOfManyCountersByShortSteps(t *testing.T) {
	w := newWorld(t)
	p := policyOf(1, sliding(1000, time.Hour))
	p.Limits[0].Mode = policy.Shadow
	p.Limits[0].Rates[0].Title = "1000/1h"
	w.set = policy.NewSet([]*policy.Policy{p})
	w.claim()
	w.read(1)
	const counters = 3*surveyStep + 7
	pod := w.pod("shop/x", 1)
	for i := range counters {
		pod.admit(identityOf(fmt.Sprint("client ", i), time.Hour), uint64(1+(i*7919)%counters%900))
	}
	pod.admit(identityOf("client 4242", time.Hour), 1500)
	pod.admit(identityOf("client 17", time.Hour), 950)
	pod.deliver()
	w.step(100 * time.Millisecond)
	views, steps := w.surveyed(t, 2)
	if steps != 4 || len(views) != 1 {
		t.Fatalf("%d limits after %d steps", len(views), steps)
	}
	v := views[0]
	if v.Limit != testPolicy+"/each-client" || v.Rate != "1000/1h" || v.Mode != "Shadow" || v.Counters != counters || v.Over < 1 || v.Over > 2 ||
		fmt.Sprint(v.Owners) != "[a]" {
		t.Errorf("the limit is %+v", v)
	}
	if len(v.Top) != 2 {
		t.Fatalf("the fullest are %+v", v.Top)
	}
	sortCounters(v.Top)
	first := v.Top[0]
	if fmt.Sprint(first.CountedBy) != `[client principal "client 4242"]` || first.Content < 1500 || first.Amount != 1000 ||
		first.Target != testTarget || first.ID != w.keys.ID(identityOf("client 4242", time.Hour)).String() {
		t.Errorf("the fullest is %+v", first)
	}
	if !strings.Contains(fmt.Sprint(v.Top[1].CountedBy), `"client 17"`) {
		t.Errorf("the second is %+v", v.Top[1])
	}
	if none, _ := w.surveyed(t, 0); len(none[0].Top) != 0 || none[0].Counters != counters {
		t.Errorf("without counters: %+v", none[0])
	}
}

// An overloaded counter refuses what exceeds its rate, one that is at ease nothing, a used-up period all.
func TestASurveyTellsWhatIsRefused(t *testing.T) {
	w := liveWorld(t)
	busy, calm := w.pod("shop/x", 1), w.pod("shop/y", 2)
	for range 200 {
		busy.demand, calm.demand = 3000, 1000
		busy.admit(identityOf("busy", time.Second), 10)
		calm.admit(identityOf("calm", time.Second), 2)
		busy.deliver()
		calm.deliver()
		w.step(10 * time.Millisecond)
	}
	views, _ := w.surveyed(t, 1)
	near(t, "offered", views[0].Offered, 4000, 200)
	near(t, "refused", views[0].Refused, 0.5, 0.05) // 2000 of 3000, and none of 1000
	if top := views[0].Top[0]; !strings.Contains(fmt.Sprint(top.CountedBy), "busy") || top.Offered < 2800 {
		t.Errorf("the fullest is %+v", top)
	}
}

func TestASurveySurvivesCountersThatComeAndGo(t *testing.T) {
	w := liveWorld(t)
	pod := w.pod("shop/x", 1)
	for i := range surveyStep + 50 {
		pod.admit(identityOf(fmt.Sprint(i), time.Second), 1)
	}
	pod.deliver()
	w.step(100 * time.Millisecond)
	s := NewSurvey(MaxTopCounters)
	if _, done := w.own.Survey(s, w.now); done {
		t.Fatal("done in one step")
	}
	w.advance(5 * time.Minute)
	for range 100 {
		w.settle()
		w.step(100 * time.Millisecond)
	}
	if len(w.own.all) > surveyStep {
		t.Fatalf("%d counters are left: the test has lost its point", len(w.own.all))
	}
	views, done := w.own.Survey(s, w.now)
	if !done || len(views) != 1 || len(views[0].Top) != 0 {
		t.Errorf("%v, %+v: counters that are gone are shown", done, views)
	}
}

func TestMergedLimitsAreSortedByHowCloseAndBounded(t *testing.T) {
	counter := func(id string, content float64) CounterView {
		return CounterView{ID: id, Content: content, Amount: 100}
	}
	views := []LimitView{
		{Limit: "a/b/calm", Counters: 1, Top: []CounterView{counter("1", 10)}},
		{Limit: "a/b/each", Rate: "100/1s", Owners: []string{"y"}, Counters: 3, Over: 1, Offered: 100, Refused: 0.5, OverUnits: 1, OverSeconds: 2,
			Top: []CounterView{counter("2", 90), counter("3", 80)}},
		{Limit: "a/b/was-over", Fullest: 1.2},
		{Limit: "a/b/each", Rate: "100/1s", Owners: []string{"x"}, Counters: 4, Over: 2, Offered: 300, Refused: 0.1, Fullest: 1.05, OverUnits: 3, OverSeconds: 4,
			Top: []CounterView{counter("4", 85), counter("5", 95)}},
	}
	top, left := MergeTop(views, 2, 2)
	if left != 1 || len(top) != 2 || top[0].Limit != "a/b/was-over" {
		t.Fatalf("%d left of %+v", left, top)
	}
	m := top[1]
	near(t, "refused", m.Refused, 0.2, 1e-9)
	if m.Counters != 7 || m.Over != 3 || m.Offered != 400 || m.Fullest != 1.05 || m.OverUnits != 4 || m.OverSeconds != 6 ||
		fmt.Sprint(m.Owners) != "[x y]" || len(m.Top) != 2 || m.Top[0].ID != "5" || m.Top[1].ID != "2" {
		t.Errorf("merged to %+v", m)
	}
	if len(views[1].Top) != 2 || views[1].Counters != 3 {
		t.Errorf("what was given is changed: %+v", views[1])
	}
}

func TestWhatAClientSendsIsCutAndPrintable(t *testing.T) {
	long := identityOf(strings.Repeat("é\n", 120), time.Second)
	text := countedBy(long)
	if len(text) != 1 || len(text[0]) > countedByMost+3 || strings.ContainsAny(text[0], "\n\uFFFD") {
		t.Errorf("shown as %q", text)
	}
	secret := wirev1.Identity{Target: testTarget, Policy: testPolicy, Limit: "each-client", Algorithm: 1, WindowMillis: 1000,
		Dimensions: []wirev1.Dimension{{Kind: wirev1.DimClientHeaderHashed, Name: "x-api-key", Value: "0123456789abcdef0123456789abcdef"}}}
	if got := fmt.Sprint(countedBy(secret.Append(nil))); got != "[client header x-api-key (hash 01234567)]" {
		t.Errorf("a secret is shown as %s", got)
	}
}
