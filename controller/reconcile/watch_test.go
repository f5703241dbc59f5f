package reconcile

import (
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/weirproxy/weir/api/v1alpha1/kube"
	"github.com/weirproxy/weir/controller/fleet"
)

// named is a policy of another name.
func named(name string, p *kube.QuotaPolicy) *kube.QuotaPolicy {
	p.Name = name
	return p
}

// keysOf are the names of what is asked to be looked at.
func keysOf(requests []reconcile.Request) []string {
	var out []string
	for _, r := range requests {
		out = append(out, r.String())
	}
	slices.Sort(out)
	return out
}

func TestWhichPoliciesATargetConcerns(t *testing.T) {
	elsewhere := named("elsewhere", policyOn("Service/orders"))
	elsewhere.Namespace = "other"
	w := newWorld(t, policyOn("Service/orders"), named("both", policyOn("Deployment/orders", "Service/orders")),
		named("none", policyOn("Service/cart")), elsewhere)
	m := mapper{reader: w.Client, fleet: w.fleet}
	if got := keysOf(m.byName(kindService)(t.Context(), service(nil))); !slices.Equal(got, []string{"shop/both", "shop/orders"}) {
		t.Errorf("the Service concerns %v", got)
	}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders"}}
	if got := keysOf(m.byName("Deployment")(t.Context(), d)); !slices.Equal(got, []string{"shop/both"}) {
		t.Errorf("the Deployment concerns %v", got)
	}
}

func TestWhichPoliciesAPodConcerns(t *testing.T) {
	w := newWorld(t, policyOn("Service/orders"), named("owner", policyOn("Deployment/orders")), named("gone", policyOn("Service/gone")),
		named("other", policyOn("Service/cart")), service(map[string]string{"app": "orders"}))
	owned := podNamed("a", map[string]string{"pod-template-hash": "1"})
	owned.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "orders-1", Controller: new(true)}}
	names := podNamed("a", nil)
	names.Annotations = map[string]string{"weirproxy.dev/target": "Service/cart"}
	for name, c := range map[string]struct {
		pod  *corev1.Pod
		want []string
	}{
		"selected by the Service": {podNamed("a", map[string]string{"app": "orders"}), []string{"shop/orders"}},
		"owned":                   {owned, []string{"shop/owner"}},
		"names a target":          {names, []string{"shop/other"}},
		"nobody's":                {podNamed("a", nil), nil},
	} {
		var got []reconcile.Request
		for _, n := range (mapper{reader: w.Client, fleet: w.fleet}).ofPod(t.Context(), c.pod) {
			got = append(got, reconcile.Request{NamespacedName: n})
		}
		if !slices.Equal(keysOf(got), c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// The Envoy of a Gateway may run in another namespace than the policies that it serves, and Kubernetes does not
// know which they are: its sidecar says so.
func TestAPodConcernsThePoliciesOfTheRoutesItReports(t *testing.T) {
	elsewhere := named("elsewhere", policyOn("HTTPRoute/front"))
	elsewhere.Namespace = "other"
	w := newWorld(t, policyOn("HTTPRoute/front"), elsewhere, named("back", policyOn("HTTPRoute/back")), named("s", policyOn("Service/front")))
	w.fleet["gateways/envoy"] = fleet.Report{Targets: []string{"shop/HTTPRoute/front", "shop/Service/front", "other/HTTPRoute/front", "x"}}
	envoy := podNamed("envoy", nil)
	envoy.Namespace = "gateways"
	var got []string
	for _, n := range (mapper{reader: w.Client, fleet: w.fleet}).ofPod(t.Context(), envoy) {
		got = append(got, n.String())
	}
	if !slices.Equal(got, []string{"shop/orders", "other/elsewhere"}) {
		t.Errorf("it concerns %v", got)
	}
}

// A rollout's many changes are one look at each policy, a moment later; what a pod was counts as well as what it is.
func TestChangesOfPodsAreGathered(t *testing.T) {
	w := newWorld(t, policyOn("Service/orders"), service(map[string]string{"app": "orders"}))
	q := &delayed{}
	h := mapper{reader: w.Client, fleet: w.fleet}.pods(podsPause)
	selected, not := podNamed("a", map[string]string{"app": "orders"}), podNamed("a", nil)
	h.Create(t.Context(), event.CreateEvent{Object: selected}, q)
	h.Delete(t.Context(), event.DeleteEvent{Object: selected}, q)
	h.Update(t.Context(), event.UpdateEvent{ObjectOld: selected, ObjectNew: selected}, q)
	h.Update(t.Context(), event.UpdateEvent{ObjectOld: selected, ObjectNew: not}, q)
	h.Update(t.Context(), event.UpdateEvent{ObjectOld: not, ObjectNew: selected}, q)
	h.Create(t.Context(), event.CreateEvent{Object: not}, q)
	if len(q.added) != 4 || q.least != podsPause {
		t.Errorf("%d looks, the first after %v", len(q.added), q.least)
	}
}

// delayed is a queue that keeps what is added for later.
type delayed struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
	added []reconcile.Request
	least time.Duration
}

func (d *delayed) AddAfter(r reconcile.Request, after time.Duration) {
	if len(d.added) == 0 || after < d.least {
		d.least = after
	}
	d.added = append(d.added, r)
}

func TestWhichChangesOfAServiceMatter(t *testing.T) {
	changed := func(f func(*corev1.Service)) bool {
		before, after := service(map[string]string{"app": "orders"}), service(map[string]string{"app": "orders"})
		f(after)
		kept, err := StripService(after)
		if err != nil {
			t.Fatal(err)
		}
		return selection().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: kept.(*corev1.Service)})
	}
	if changed(func(s *corev1.Service) { s.Spec.Ports = []corev1.ServicePort{{Port: 1}} }) {
		t.Error("a port matters")
	}
	if !changed(func(s *corev1.Service) { s.Spec.Selector["app"] = "x" }) || !changed(func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeExternalName }) {
		t.Error("neither selector nor type matters")
	}
}
