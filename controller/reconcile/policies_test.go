package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/weirproxy/weir/api/v1alpha1"
	"github.com/weirproxy/weir/api/v1alpha1/kube"
	"github.com/weirproxy/weir/controller/changes"
	"github.com/weirproxy/weir/controller/fleet"
	"github.com/weirproxy/weir/controller/publish"
	"github.com/weirproxy/weir/controller/status"
)

// topic is a policy topic in memory.
type topic struct {
	records map[types.NamespacedName]publish.Desired
	writes  int
	away    error
	unread  bool
}

func (f *topic) Publish(_ context.Context, d publish.Desired) (publish.Published, error) {
	if f.away != nil {
		return publish.Published{}, f.away
	}
	n := types.NamespacedName{Namespace: d.Document.Metadata.Namespace, Name: d.Document.Metadata.Name}
	if was, known := f.records[n]; !known || fmt.Sprint(was.Generation, was.Targets) != fmt.Sprint(d.Generation, d.Targets) {
		f.writes++
	}
	f.records[n] = d
	return f.Lookup(n), nil
}

func (f *topic) Delete(_ context.Context, n types.NamespacedName) error {
	if f.away == nil {
		delete(f.records, n)
	}
	return f.away
}

func (f *topic) Lookup(n types.NamespacedName) publish.Published {
	d, known := f.records[n]
	return publish.Published{Unread: f.unread, Known: known, Generation: d.Generation}
}

func (f *topic) Orphans(exists func(types.NamespacedName) bool) []types.NamespacedName {
	var out []types.NamespacedName
	for n := range f.records {
		if !exists(n) {
			out = append(out, n)
		}
	}
	return out
}

func (f *topic) Changes() *changes.Set { return changes.NewSet(0) }

// fleetOf is what pods report, by namespace/name.
type fleetOf map[string]fleet.Report

func (f fleetOf) Report(pod, _ string, _ types.NamespacedName) (fleet.Report, bool) {
	r, ok := f[pod]
	return r, ok
}

func (f fleetOf) Naming(target string) []string {
	var out []string
	for pod, r := range f {
		if slices.Contains(r.Targets, target) {
			out = append(out, pod)
		}
	}
	return out
}

func (fleetOf) Waiting() string { return "" }

func (fleetOf) Changes() *changes.Set { return changes.NewSet(0) }

// world is a cluster with a topic beside it.
type world struct {
	client.Client
	t       *testing.T
	topic   *topic
	fleet   fleetOf
	facts   status.Facts // of the last status
	events  *events.FakeRecorder
	loop    *Policies
	patches int
	lost    bool // the lease
	served  map[string]bool
	late    []string // as noted
}

// Served implements kinds.
func (w *world) Served(_ context.Context, gk schema.GroupKind) (served, error) {
	if !w.served[gk.Kind] {
		return served{missing: "the cluster has no kind " + gk.String()}, nil
	}
	return served{gvk: gk.WithVersion("v1"), patience: time.Minute}, nil
}

// Late implements kinds.
func (w *world) Late(gk schema.GroupKind, late bool) {
	w.late = append(w.late, fmt.Sprint(gk.Kind, " ", late))
}

func scheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	if err := errors.Join(clientscheme.AddToScheme(s), kube.AddToScheme(s)); err != nil {
		t.Fatal(err)
	}
	s.AddKnownTypeWithName(schema.GroupVersionKind{Group: gatewayGroup, Version: "v1", Kind: "HTTPRoute"}, &metav1.PartialObjectMetadata{})
	return s
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	w := &world{t: t, topic: &topic{records: map[types.NamespacedName]publish.Desired{}}, fleet: fleetOf{},
		events: events.NewFakeRecorder(10), served: map[string]bool{}}
	w.Client = fake.NewClientBuilder().WithScheme(scheme(t)).WithObjects(objects...).
		WithStatusSubresource(&kube.QuotaPolicy{}).
		WithIndex(&kube.QuotaPolicy{}, policyTargets, policyKeys).
		WithIndex(&corev1.Pod{}, podTargets, podKeys).
		WithInterceptorFuncs(interceptor.Funcs{
			SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
				w.patches++
				return c.SubResource(sub).Patch(ctx, o, p, opts...)
			},
		}).Build()
	w.loop = &Policies{
		client: w.Client, topic: w.topic, fleet: w.fleet, now: func() time.Time { return time.Unix(0, 0) }, events: w.events,
		status: func(f status.Facts, before kube.QuotaPolicyStatus, now time.Time) kube.QuotaPolicyStatus {
			w.facts = f
			return status.Make(f, before, now)
		},
		leads:    func() bool { return !w.lost },
		watched:  func(n string) bool { return n != "unwatched" },
		resolver: resolver{reader: w.Client, kinds: w},
	}
	return w
}

func (w *world) reconcile(n types.NamespacedName) reconcile.Result {
	w.t.Helper()
	r, err := w.loop.Reconcile(w.t.Context(), reconcile.Request{NamespacedName: n})
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

// said are the events since the last call.
func (w *world) said() []string {
	var out []string
	for {
		select {
		case e := <-w.events.Events:
			out = append(out, e)
		default:
			return out
		}
	}
}

// change edits an object as a person does: of a policy, the generation moves.
func change[T client.Object](w *world, o T, f func(T)) {
	w.t.Helper()
	if err := w.Get(w.t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
		w.t.Fatal(err)
	}
	f(o)
	if p, is := any(o).(*kube.QuotaPolicy); is {
		p.Generation++
	}
	if err := w.Update(w.t.Context(), o); err != nil {
		w.t.Fatal(err)
	}
}

var orders = types.NamespacedName{Namespace: "shop", Name: "orders"}

func policyOn(refs ...string) *kube.QuotaPolicy {
	p := &kube.QuotaPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders", Generation: 1}}
	for _, r := range refs {
		kind, name, _ := strings.Cut(r, "/")
		group := map[string]string{"Service": "", "HTTPRoute": gatewayGroup}
		ref := v1alpha1.TargetRef{Group: "apps", Kind: kind, Name: name}
		if g, is := group[kind]; is {
			ref.Group = g
		}
		p.Spec.TargetRefs = append(p.Spec.TargetRefs, ref)
	}
	p.Spec.Limits = []v1alpha1.Limit{{Name: "all", Rates: []v1alpha1.Rate{{Limit: 10, Window: &v1alpha1.Duration{Duration: time.Second}}}}}
	return p
}

func service(selector map[string]string) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders"}, Spec: corev1.ServiceSpec{Selector: selector}}
}

func podNamed(name string, labels map[string]string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: labels}}
}

func (w *world) podNames() []string {
	var out []string
	for _, p := range w.facts.Pods { // in the order of their names
		out = append(out, p.Name)
	}
	return out
}

func TestAPolicyIsPublishedWithTheServicesSelectorAndKeptSo(t *testing.T) {
	w := newWorld(t, policyOn("Service/orders"), service(map[string]string{"app": "orders"}),
		podNamed("a", map[string]string{"app": "orders"}), podNamed("b", map[string]string{"app": "orders", "v": "2"}),
		podNamed("c", map[string]string{"app": "other"}))
	w.reconcile(orders)
	d := w.topic.records[orders]
	if d.Generation != 1 || len(d.Targets) != 1 || d.Targets[0].Name != "shop/Service/orders" || d.Targets[0].Selector["app"] != "orders" {
		t.Errorf("published %+v", d)
	}
	if got := w.podNames(); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("its pods are %v", got)
	}
	change(w, service(nil), func(s *corev1.Service) { s.Spec.Selector = map[string]string{"app": "orders", "v": "2"} })
	w.reconcile(orders)
	if got := w.topic.records[orders].Targets[0].Selector["v"]; got != "2" {
		t.Errorf("the selector published is %v", w.topic.records[orders].Targets)
	}
	if got := w.podNames(); !slices.Equal(got, []string{"b"}) {
		t.Errorf("its pods are %v", got)
	}
}

// One patch where the status is another, none where it is the same; the same of events.
func TestTheStatusIsWrittenOnceAChange(t *testing.T) {
	w := newWorld(t, policyOn("Service/orders"), service(map[string]string{"app": "orders"}))
	for range 3 {
		w.reconcile(orders)
	}
	if w.patches != 1 || w.topic.writes != 1 {
		t.Errorf("%d patches and %d records for one change", w.patches, w.topic.writes)
	}
	if e := w.said(); len(e) != 2 || !strings.HasPrefix(e[0], "Normal Accepted ") || !strings.HasPrefix(e[1], "Normal Pending ") {
		t.Errorf("events %q", e)
	}
	change(w, policyOn(), func(p *kube.QuotaPolicy) { p.Spec.Limits[0].Rates[0].Limit = 20 })
	w.reconcile(orders)
	if e := w.said(); w.patches != 2 || len(e) != 0 {
		t.Errorf("%d patches, events %q: no condition turned", w.patches, e)
	}
}

func TestAnInvalidPolicyIsNotPublishedAndTheLastGoodOneStays(t *testing.T) {
	w := newWorld(t, policyOn("Service/orders"), service(map[string]string{"app": "orders"}))
	w.reconcile(orders)
	w.said()
	change(w, policyOn(), func(p *kube.QuotaPolicy) {
		p.Spec.Limits[0].Rates[0].Limit = -1
		p.Spec.Limits[0].Rates[0].Window = nil
	})
	w.reconcile(orders)
	if d := w.topic.records[orders]; d.Generation != 1 {
		t.Errorf("generation %d is in the topic", d.Generation)
	}
	e := strings.Join(w.said(), "\n")
	for _, field := range []string{"Warning Invalid", "spec.limits[0].rates[0].limit", "spec.limits[0].rates[0].window"} {
		if !strings.Contains(e, field) {
			t.Errorf("%q is missing in the event %q", field, e)
		}
	}
	if w.facts.Published.Generation != 1 {
		t.Errorf("the facts have generation %d in force", w.facts.Published.Generation)
	}
}

func TestTargetsThatAreNotThereAreNamed(t *testing.T) {
	w := newWorld(t, policyOn("Service/orders", "Deployment/orders", "StatefulSet/db", "HTTPRoute/front"),
		service(nil), &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders"}},
		&appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "db"}})
	r := w.reconcile(orders)
	want := []string{"has no selector", "there is no StatefulSet/db in namespace shop", "the cluster has no kind HTTPRoute.gateway.networking.k8s.io"}
	if got := strings.Join(w.facts.Missing, "\n"); len(w.facts.Missing) != len(want) {
		t.Errorf("missing are:\n%s", got)
	}
	for i, m := range w.facts.Missing {
		if !strings.Contains(m, want[i]) {
			t.Errorf("missing %q, want %q", m, want[i])
		}
	}
	if d := w.topic.records[orders]; len(d.Targets) != 1 || d.Targets[0].Name != "shop/Deployment/orders" {
		t.Errorf("published for %v", d.Targets)
	}
	if r.RequeueAfter != askedAgain {
		t.Errorf("looked at again after %v: nothing tells that a kind was installed", r.RequeueAfter)
	}
	w.served["HTTPRoute"] = true
	w.reconcile(orders)
	if got := w.facts.Missing[2]; got != "there is no HTTPRoute/front in namespace shop" {
		t.Errorf("with the kind installed: %q", got)
	}
}

func TestPodsOfTargets(t *testing.T) {
	owned := podNamed("owned", nil)
	owned.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "orders-abc", Controller: new(true)}}
	owned.Labels = map[string]string{"pod-template-hash": "abc", "app": "orders"}
	names := podNamed("names", map[string]string{"app": "gateway"})
	names.Annotations = map[string]string{"weirproxy.dev/target": "Service/other, shop/Service/orders"}
	foreign := podNamed("foreign", nil)
	foreign.Annotations = map[string]string{"weirproxy.dev/target": "elsewhere/Service/orders"}
	w := newWorld(t, policyOn("Service/orders", "Deployment/orders"), service(map[string]string{"app": "orders"}),
		&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders"}}, owned, names, foreign)
	w.reconcile(orders)
	if got := w.podNames(); !slices.Equal(got, []string{"names", "owned"}) {
		t.Errorf("pods %v, want the one that is owned and selected, once, and the one that names the target", got)
	}
	if got := w.facts.Pods[1].Targets; !slices.Equal(got, []string{"shop/Service/orders", "shop/Deployment/orders"}) {
		t.Errorf("the pod belongs to %v", got)
	}
}

func TestWhatIsToldOfAPod(t *testing.T) {
	running := corev1.ContainerStatus{Name: "weir-sidecar", ContainerID: "c1"}
	running.State.Running = &corev1.ContainerStateRunning{}
	crashed := corev1.ContainerStatus{Name: "weir-sidecar", ContainerID: "c1"}
	crashed.State.Waiting = &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}
	never := corev1.ContainerStatus{Name: "weir-sidecar"}
	never.State.Waiting = &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}
	app := func(s corev1.ContainerState) corev1.ContainerStatus {
		return corev1.ContainerStatus{Name: "app", State: s}
	}
	injected := corev1.PodSpec{InitContainers: []corev1.Container{{Name: "weir-sidecar"}}, Containers: []corev1.Container{{Name: "app"}}}
	for name, c := range map[string]struct {
		change func(*corev1.Pod)
		want   status.Pod
	}{
		"without a sidecar": {func(p *corev1.Pod) { p.Spec.InitContainers = nil }, status.Pod{}},
		"pending":           {func(p *corev1.Pod) { p.Status.Phase = corev1.PodPending }, status.Pod{Sidecar: true, Waiting: true}},
		"its image is not there, while the application runs": {func(p *corev1.Pod) {
			p.Spec = corev1.PodSpec{Containers: []corev1.Container{{Name: "app"}, {Name: "weir-sidecar"}}}
			p.Status.Phase, p.Status.ContainerStatuses = corev1.PodPending, []corev1.ContainerStatus{app(running.State), never}
		}, status.Pod{Sidecar: true, Down: true}},
		"its image is not there, while the application crashes": {func(p *corev1.Pod) {
			p.Spec = corev1.PodSpec{Containers: []corev1.Container{{Name: "app"}, {Name: "weir-sidecar"}}}
			ended := app(crashed.State)
			ended.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{}
			p.Status.Phase, p.Status.ContainerStatuses = corev1.PodPending, []corev1.ContainerStatus{ended, never}
		}, status.Pod{Sidecar: true, Down: true}},
		"nothing has started but it": {func(p *corev1.Pod) {
			p.Spec = corev1.PodSpec{Containers: []corev1.Container{{Name: "app"}, {Name: "weir-sidecar"}}}
			p.Status.Phase, p.Status.ContainerStatuses = corev1.PodPending, []corev1.ContainerStatus{app(never.State), running}
		}, status.Pod{Sidecar: true, Waiting: true}},
		"ended": {func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }, status.Pod{Sidecar: true, Leaving: true}},
		"runs":  {func(p *corev1.Pod) { p.Status.InitContainerStatuses = []corev1.ContainerStatus{running} }, status.Pod{Sidecar: true}},
		"plain container": {func(p *corev1.Pod) {
			p.Spec = corev1.PodSpec{Containers: []corev1.Container{{Name: "weir-sidecar"}}}
			p.Status.ContainerStatuses = []corev1.ContainerStatus{running}
		}, status.Pod{Sidecar: true}},
		"crashes": {func(p *corev1.Pod) { p.Status.InitContainerStatuses = []corev1.ContainerStatus{crashed} }, status.Pod{Sidecar: true, Down: true}},
	} {
		p := podNamed("a", map[string]string{"app": "orders"})
		p.Spec, p.Status.Phase = injected, corev1.PodRunning
		c.change(p)
		kept, err := StripPod(p.DeepCopy())
		if err != nil {
			t.Fatal(err)
		}
		w := newWorld(t, policyOn("Service/orders"), service(map[string]string{"app": "orders"}), kept.(*corev1.Pod))
		w.reconcile(orders)
		c.want.Name, c.want.Targets = "a", []string{"shop/Service/orders"}
		if got := w.facts.Pods[0]; fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// A run is told from the next one once the kubelet says which it is: not before, or what a sidecar reports first
// would be taken for the last run's.
func TestRuns(t *testing.T) {
	p := podNamed("a", nil)
	p.UID, p.Status.Phase = "u", corev1.PodPending
	with := func(phase corev1.PodPhase, id string) string {
		q := p.DeepCopy()
		q.Status.Phase = phase
		q.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "weir-sidecar", ContainerID: id}}
		return runOf(q)
	}
	if got := []string{runOf(p), with(corev1.PodPending, ""), with(corev1.PodPending, "c"), with(corev1.PodRunning, "c")}; !slices.Equal(got, []string{"", "", "u/c", "u/c"}) {
		t.Errorf("runs %q", got)
	}
	if p.Status.Phase = corev1.PodRunning; runOf(p) != "u" {
		t.Errorf("run %q of a pod of whose containers nothing is told", runOf(p))
	}
}

// Nothing that a status cannot tell makes a policy be looked at; all that it can does.
func TestWhichChangesOfAPodMatter(t *testing.T) {
	running := corev1.ContainerStatus{Name: "weir-sidecar", ContainerID: "c1"}
	running.State.Running = &corev1.ContainerStateRunning{}
	base := podNamed("a", map[string]string{"app": "orders"})
	started := corev1.ContainerStatus{Name: "app", State: running.State}
	base.Status.Phase, base.Status.ContainerStatuses = corev1.PodRunning, []corev1.ContainerStatus{running}
	for name, c := range map[string]struct {
		change func(*corev1.Pod)
		same   bool
	}{
		"an annotation": {func(p *corev1.Pod) { p.Annotations = map[string]string{"a": "b"} }, true},
		"a condition":   {func(p *corev1.Pod) { p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady}} }, true},
		"another container": {func(p *corev1.Pod) {
			p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{Name: "app"})
		}, true},
		"a label":             {func(p *corev1.Pod) { p.Labels["app"] = "x" }, false},
		"the named target":    {func(p *corev1.Pod) { p.Annotations = map[string]string{"weirproxy.dev/target": "Service/x"} }, false},
		"the phase":           {func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }, false},
		"its end begins":      {func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{} }, false},
		"the sidecar's run":   {func(p *corev1.Pod) { p.Status.ContainerStatuses[0].ContainerID = "c2" }, false},
		"the sidecar's end":   {func(p *corev1.Pod) { p.Status.ContainerStatuses[0].State.Running = nil }, false},
		"another of its name": {func(p *corev1.Pod) { p.UID = "2" }, false},
		"its first start": {func(p *corev1.Pod) {
			p.Status.Phase, p.Status.ContainerStatuses = corev1.PodPending, append(p.Status.ContainerStatuses, started)
		}, false},
	} {
		p := base.DeepCopy()
		c.change(p)
		was := base.DeepCopy()
		if p.Status.Phase == corev1.PodPending {
			was.Status.Phase = corev1.PodPending
		}
		before, err := StripPod(was)
		after, err2 := StripPod(p)
		if err != nil || err2 != nil {
			t.Fatal(err, err2)
		}
		if got := samePod(before.(*corev1.Pod), after.(*corev1.Pod)); got != c.same {
			t.Errorf("%s: the same %v, want %v", name, got, c.same)
		}
	}
}

func TestPodsOfARouteAreThoseThatReportIt(t *testing.T) {
	route := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "front"}}
	route.SetGroupVersionKind(schema.GroupVersionKind{Group: gatewayGroup, Version: "v1", Kind: "HTTPRoute"})
	leaving := podNamed("leaving", nil)
	leaving.Finalizers, leaving.DeletionTimestamp = []string{"example.com/x"}, &metav1.Time{Time: time.Unix(1, 0)}
	w := newWorld(t, policyOn("HTTPRoute/front"), route, leaving)
	w.served["HTTPRoute"] = true
	names := []string{"shop/HTTPRoute/front"}
	w.fleet["gateways/known"] = fleet.Report{Targets: names}
	w.fleet["gateways/gone"] = fleet.Report{Targets: names, Stale: true}
	w.fleet["shop/leaving"] = fleet.Report{Targets: names}
	w.fleet["gateways/other"] = fleet.Report{Targets: []string{"shop/HTTPRoute/back"}}
	w.reconcile(orders)
	if len(w.facts.Missing) > 0 || !slices.Equal(w.podNames(), []string{"gateways/known", "leaving"}) || !w.facts.Pods[1].Leaving {
		t.Errorf("missing %v, pods %+v", w.facts.Missing, w.facts.Pods)
	}
}

func TestAPolicyThatIsGoneLeavesTheTopic(t *testing.T) {
	held := policyOn("Service/orders")
	held.Finalizers = []string{"example.com/slow"}
	w := newWorld(t, held)
	w.reconcile(orders)
	elsewhere := types.NamespacedName{Namespace: "unwatched", Name: "x"}
	gone := types.NamespacedName{Namespace: "shop", Name: "gone"}
	w.topic.records[gone], w.topic.records[elsewhere] = publish.Desired{}, publish.Desired{}
	if err := w.Delete(t.Context(), held); err != nil {
		t.Fatal(err)
	}
	w.topic.away = errors.New("Kafka is away")
	if r := w.reconcile(orders); r.RequeueAfter != retryAfter {
		t.Errorf("tried again after %v while Kafka is away", r.RequeueAfter)
	}
	w.topic.away = nil
	for _, n := range []types.NamespacedName{orders, elsewhere, gone} {
		w.reconcile(n)
	}
	if len(w.topic.records) != 0 {
		t.Errorf("the topic still has %v", w.topic.records)
	}
}

func TestKafkaAwayIsSaidAndTriedAgain(t *testing.T) {
	w := newWorld(t, policyOn("Service/orders"), service(map[string]string{"app": "orders"}))
	w.topic.away = fmt.Errorf("%w: no broker", publish.ErrNotReady)
	if r := w.reconcile(orders); r.RequeueAfter != retryAfter || !strings.Contains(w.facts.NotPublished, "no broker") {
		t.Errorf("again after %v, facts %q", r.RequeueAfter, w.facts.NotPublished)
	}
	w.topic.away = nil
	if r := w.reconcile(orders); r.RequeueAfter != 0 || w.facts.NotPublished != "" {
		t.Errorf("with Kafka back: %+v", r)
	}
}

// Until a process that starts has read the policies and heard sidecars, it leaves what is said of a generation,
// which it would take back a moment later. What is new is published and said at once.
func TestAColdStartLeavesStatusesAsTheyAre(t *testing.T) {
	pod := podNamed("a", map[string]string{"app": "orders"})
	pod.Spec.Containers, pod.Status.Phase = []corev1.Container{{Name: "weir-sidecar"}}, corev1.PodRunning
	w := newWorld(t, policyOn("Service/orders"), service(map[string]string{"app": "orders"}), pod)
	w.reconcile(orders)
	const young = coldFor - 3*time.Second
	began := time.Unix(100, 0)
	w.loop.began, w.loop.now = began, func() time.Time { return began.Add(young) }
	w.loop.fleet = deaf{w.fleet}
	look := func(when string, again time.Duration, patches int) {
		t.Helper()
		if r := w.reconcile(orders); r.RequeueAfter != again || w.patches != patches {
			t.Errorf("%s: again after %v, %d patches", when, r.RequeueAfter, w.patches)
		}
	}
	look("no sidecar heard", coldFor-young, 1)
	w.topic.unread = true
	look("policies not read", coldFor-young, 1)
	w.topic.unread = false
	change(w, policyOn(), func(p *kube.QuotaPolicy) { p.Spec.Limits[0].Rates[0].Limit = 20 })
	look("a new generation", 0, 2)
	if w.topic.records[orders].Generation != 2 {
		t.Errorf("the topic has %+v", w.topic.records[orders])
	}
	w.loop.fleet = w.fleet
	look("sidecars are heard", 0, 3)
	w.loop.fleet, w.loop.now = deaf{w.fleet}, func() time.Time { return began.Add(coldFor) }
	look("they are not heard for long", 0, 4)
}

// deaf has not read the status topic.
type deaf struct{ fleetOf }

func (deaf) Waiting() string { return "not read yet" }

// What another object left behind under the name is not the last good generation of this one.
func TestAPolicyMadeAgainInvalidEndsTheOneBefore(t *testing.T) {
	first := policyOn("Service/orders")
	first.UID = "1"
	w := newWorld(t, first, service(map[string]string{"app": "orders"}))
	w.reconcile(orders)
	again := func(uid types.UID, limit int64) {
		t.Helper()
		p := policyOn("Service/orders")
		p.UID, p.Spec.Limits[0].Rates[0].Limit = uid, limit
		if err := errors.Join(w.Delete(t.Context(), policyOn()), w.Create(t.Context(), p)); err != nil {
			t.Fatal(err)
		}
	}
	again("2", -1)
	w.topic.away = errors.New("Kafka is away")
	if r := w.reconcile(orders); r.RequeueAfter != retryAfter {
		t.Errorf("tried again after %v while Kafka is away", r.RequeueAfter)
	}
	w.topic.away = nil
	if w.reconcile(orders); len(w.topic.records) != 0 || w.facts.Published.Known {
		t.Errorf("the topic still has %v", w.topic.records)
	}
	again("3", 5)
	w.reconcile(orders)
	change(w, policyOn(), func(p *kube.QuotaPolicy) { p.Spec.Limits[0].Rates[0].Limit = -1 })
	if w.reconcile(orders); !w.facts.Published.Known {
		t.Error("the last good generation of the same object went")
	}
}

// kube-apiserver refuses an event whose note has more than 1024 bytes.
func TestAnEventIsCutToWhatCanBeSent(t *testing.T) {
	for _, before := range []string{"", "x", "xy"} {
		long := before + strings.Repeat("é", 1000)
		got := note(long)
		if len(got) > 1024 || len(got) < 1020 || !utf8.ValidString(got) || !strings.HasPrefix(long, strings.TrimSuffix(got, "…")) || long == got {
			t.Errorf("%d bytes: …%q", len(got), got[len(got)-8:])
		}
	}
	if whole := strings.Repeat("a", 1024); note(whole) != whole {
		t.Error("a note that fits was cut")
	}
	w := newWorld(t, policyOn("Service/orders"))
	change(w, policyOn(), func(p *kube.QuotaPolicy) {
		for i := range 100 {
			p.Spec.Limits = append(p.Spec.Limits, v1alpha1.Limit{Name: fmt.Sprint("l", i), Rates: []v1alpha1.Rate{{Limit: -1}}})
		}
	})
	w.reconcile(orders)
	for _, e := range w.said() {
		if len(e) > 1100 {
			t.Errorf("an event of %d bytes", len(e))
		}
	}
}

// A process that has lost its lease, and so cannot publish, says nothing of it in a status.
func TestALostLeaseIsNoReasonInAStatus(t *testing.T) {
	w := newWorld(t, policyOn("Service/orders"), service(map[string]string{"app": "orders"}))
	w.topic.away, w.lost = publish.ErrNotReady, true
	_, err := w.loop.Reconcile(t.Context(), reconcile.Request{NamespacedName: orders})
	if !errors.Is(err, publish.ErrNotReady) || w.patches != 0 {
		t.Errorf("%v, %d patches", err, w.patches)
	}
}

// A status that was made of an old object is not written over a newer one, but made again.
func TestAConflictIsTriedAgain(t *testing.T) {
	w := newWorld(t, policyOn("Service/orders"), service(map[string]string{"app": "orders"}))
	stale := &kube.QuotaPolicy{}
	if err := w.Get(t.Context(), orders, stale); err != nil {
		t.Fatal(err)
	}
	change(w, policyOn(), func(*kube.QuotaPolicy) {})
	w.loop.client = behind{w.Client, stale}
	if r := w.reconcile(orders); r.RequeueAfter != conflictAfter || len(w.said()) != 0 {
		t.Errorf("%+v", r)
	}
}

// behind reads a policy as it was.
type behind struct {
	client.Client
	policy *kube.QuotaPolicy
}

func (b behind) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	if p, is := o.(*kube.QuotaPolicy); is {
		b.policy.DeepCopyInto(p)
		return nil
	}
	return b.Client.Get(ctx, key, o, opts...)
}

func TestWhatIsLookedAtWhenAllMayHaveChanged(t *testing.T) {
	w := newWorld(t, policyOn("Service/orders"))
	orphan := types.NamespacedName{Namespace: "shop", Name: "orphan"}
	w.topic.records[orphan] = publish.Desired{}
	got, err := all{w.Client, w.topic}.names(t.Context())
	if err != nil || !slices.Equal(got, []types.NamespacedName{orders, orphan}) {
		t.Errorf("%v, %v", got, err)
	}
}
