package status

import (
	"reflect"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/weirproxy/weir/api/v1alpha1"
	"github.com/weirproxy/weir/api/v1alpha1/kube"
	"github.com/weirproxy/weir/controller/fleet"
	"github.com/weirproxy/weir/controller/publish"
)

// flawsOfPods are what may be otherwise with a pod; those of a report need one.
func flawsOfPods() []func(*Pod) {
	report := func(change func(*fleet.Report)) func(*Pod) {
		return func(p *Pod) {
			if p.Report != nil {
				change(p.Report)
			}
		}
	}
	return []func(*Pod){
		func(p *Pod) { p.Sidecar = false }, func(p *Pod) { p.Waiting = true }, func(p *Pod) { p.Leaving = true },
		func(p *Pod) { p.Down = true }, func(p *Pod) { p.Report = nil },
		report(func(r *fleet.Report) { r.Version = 30 }), report(func(r *fleet.Report) { r.Version = -1 }),
		report(func(r *fleet.Report) { r.Seen = 30 }), report(func(r *fleet.Report) { r.Error = "refused" }),
		report(func(r *fleet.Report) { r.Generation = 0 }), report(func(r *fleet.Report) { r.Generation = 3 }),
		report(func(r *fleet.Report) { r.Generation = 5 }), report(func(r *fleet.Report) { r.Targets = nil }),
		report(func(r *fleet.Report) { r.Stale = true }), report(func(r *fleet.Report) { r.Former = true }),
		report(func(r *fleet.Report) { r.Foreign = true }), report(func(r *fleet.Report) { r.Degraded = true }),
	}
}

func flawsOfFacts() []func(*Facts) {
	return []func(*Facts){
		func(f *Facts) { f.Generation = 5 }, func(f *Facts) { f.Invalid = "wrong" }, func(f *Facts) { f.NotPublished = "away" },
		func(f *Facts) { f.Published = publish.Published{} }, func(f *Facts) { f.Published.Unread = true },
		func(f *Facts) { f.Published.Version = 30 }, func(f *Facts) { f.Published.Generation = 5 },
		func(f *Facts) { f.Published.Generation = 0 }, func(f *Facts) { f.Deaf = "away" },
		func(f *Facts) { f.Missing = []string{"gone"} },
	}
}

// drawFlaws draws none as often as some.
func drawFlaws[T any](t *rapid.T, label string, of []T) []T {
	if !rapid.Bool().Draw(t, label) {
		return nil
	}
	return rapid.SliceOfN(rapid.SampledFrom(of), 1, 2).Draw(t, label)
}

func drawFacts(t *rapid.T) Facts {
	f := facts()
	for _, n := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c"}), 0, 3, rapid.ID[string]).Draw(t, "pods") {
		f.Pods = append(f.Pods, pod(n, drawFlaws(t, n, flawsOfPods())...))
	}
	for _, flaw := range drawFlaws(t, "facts", flawsOfFacts()) {
		flaw(&f)
	}
	return f
}

// checkMany tries a property on 30 draws for each of rapid's: they cost microseconds.
func checkMany(t *testing.T, property func(*rapid.T)) {
	rapid.Check(t, func(t *rapid.T) {
		for range 30 {
			property(t)
		}
	})
}

// Programmed is True only where each single thing that it stands for is so, whatever else is. Said again in other
// words than the code's, on purpose.
func TestProgrammedImpliesAll(t *testing.T) {
	trues := 0
	checkMany(t, func(t *rapid.T) {
		f := drawFacts(t)
		s := Make(f, kube.QuotaPolicyStatus{}, noon())
		if condition(s, kube.ConditionProgrammed).Status != metav1.ConditionTrue {
			return
		}
		trues++
		if f.Invalid != "" || f.NotPublished != "" || !f.Published.Known || f.Published.Generation != f.Generation {
			t.Fatalf("Programmed, and not published: %+v", f)
		}
		living := 0
		for _, p := range f.Pods {
			if p.Leaving || p.Waiting && (p.Report == nil || p.Report.Stale || p.Report.Former) {
				continue
			}
			living++
			r := p.Report
			if !p.Sidecar || p.Down || r == nil || r.Stale || r.Former || r.Foreign || r.Version != f.Published.Version ||
				r.Generation != 0 && r.Generation != f.Generation || !slices.Contains(r.Targets, target) {
				t.Fatalf("Programmed, and pod %s does not enforce it: %+v", p.Name, r)
			}
		}
		if living == 0 || int(s.Pods.Total) != living || s.Pods.Enforcing != s.Pods.Total || s.Pods.OldestGeneration != f.Generation ||
			len(s.Pods.Lagging) > 0 || s.Pods.WithoutSidecar > 0 {
			t.Fatalf("Programmed with pods %+v, of which %d live", s.Pods, living)
		}
	})
	if trues == 0 {
		t.Error("no draw was Programmed: the property was not tried")
	}
}

// Counts add up, and every pod that counts is enforcing, lagging, or without a sidecar.
func TestCountsAddUp(t *testing.T) {
	checkMany(t, func(t *rapid.T) {
		p := Make(drawFacts(t), kube.QuotaPolicyStatus{}, noon()).Pods
		if int(p.Enforcing)+len(p.Lagging)+int(p.WithoutSidecar) != int(p.Total) || len(p.WithoutSidecarNames) != int(p.WithoutSidecar) {
			t.Fatalf("pods %+v", p)
		}
	})
}

// A picture that is the same gives the same status, later and in whatever order its pods come: no status leads to
// another. Neither facts nor the last status are changed.
func TestAnUnchangedPictureGivesAnEqualStatus(t *testing.T) {
	checkMany(t, func(t *rapid.T) {
		f, before := drawFacts(t), Make(drawFacts(t), kube.QuotaPolicyStatus{}, noon())
		kept, pods := *before.DeepCopy(), slices.Clone(f.Pods)
		first := Make(f, before, noon().Add(time.Minute))
		if !reflect.DeepEqual(before, kept) || !reflect.DeepEqual(f.Pods, pods) {
			t.Fatal("what was given was changed")
		}
		slices.Reverse(f.Pods)
		if second := Make(f, first, noon().Add(time.Hour)); !reflect.DeepEqual(first, second) {
			t.Fatalf("first\n%+v\nthen\n%+v", first, second)
		}
	})
}

func BenchmarkMake1000Pods(b *testing.B) {
	f := facts()
	for i := range 1000 {
		f.Pods = append(f.Pods, pod(string(rune('a'+i%26))+time.Duration(i).String()))
	}
	f.Spec = &v1alpha1.QuotaPolicySpec{}
	for b.Loop() {
		Make(f, kube.QuotaPolicyStatus{}, noon())
	}
}
