package reconcile

import (
	"context"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/weirproxy/weir/api/v1alpha1/kube"
)

// The index of policies: by target, Kind/name.
const policyTargets = "weir.targets"

func policyKeys(o client.Object) []string {
	p, ok := o.(*kube.QuotaPolicy)
	if !ok {
		return nil
	}
	var keys []string
	for _, ref := range p.Spec.TargetRefs {
		keys = append(keys, ref.Kind+"/"+ref.Name)
	}
	return keys
}

// mapper finds the policies that an object concerns.
type mapper struct {
	reader client.Reader
	fleet  Fleet
}

// byName maps an object of a kind to the policies that name it as target.
func (m mapper) byName(kind string) handler.MapFunc {
	return func(ctx context.Context, o client.Object) []reconcile.Request {
		return m.policies(ctx, o.GetNamespace(), client.MatchingFields{policyTargets: kind + "/" + o.GetName()})
	}
}

func (m mapper) policies(ctx context.Context, namespace string, which ...client.ListOption) []reconcile.Request {
	var list kube.QuotaPolicyList
	which = append(which, client.InNamespace(namespace), client.UnsafeDisableDeepCopy)
	if m.reader.List(ctx, &list, which...) != nil {
		return nil // the cache ends
	}
	var out []reconcile.Request
	for i := range list.Items {
		out = append(out, request(&list.Items[i]))
	}
	return out
}

func request(o client.Object) reconcile.Request {
	return reconcile.Request{NamespacedName: client.ObjectKeyFromObject(o)}
}

// ofPod lists the policies of whose targets a pod is one; one may be there twice. The policies of a namespace
// are few, so each is looked at.
func (m mapper) ofPod(ctx context.Context, p *corev1.Pod) []types.NamespacedName {
	var list kube.QuotaPolicyList
	if m.reader.List(ctx, &list, client.InNamespace(p.Namespace), client.UnsafeDisableDeepCopy) != nil {
		return nil // the cache ends
	}
	keys := map[string]bool{}
	for _, k := range podKeys(p) {
		keys[k] = true
	}
	var out []types.NamespacedName
	for i := range list.Items {
		if m.concerns(ctx, &list.Items[i], p, keys) {
			out = append(out, client.ObjectKeyFromObject(&list.Items[i]))
		}
	}
	return append(out, m.reported(ctx, p)...)
}

// reported lists the policies, of any namespace, of the Gateways and routes that a pod's sidecar reports.
func (m mapper) reported(ctx context.Context, p *corev1.Pod) []types.NamespacedName {
	report, _ := m.fleet.Report(p.Namespace+"/"+p.Name, "", types.NamespacedName{})
	var out []types.NamespacedName
	for _, target := range report.Targets {
		namespace, key, _ := strings.Cut(target, "/")
		if kind, _, _ := strings.Cut(key, "/"); !gatewayKind(kind) {
			continue
		}
		for _, r := range m.policies(ctx, namespace, client.MatchingFields{policyTargets: key}) {
			out = append(out, r.NamespacedName)
		}
	}
	return out
}

// concerns also decides, and notes in keys, whether a Service selects the pod.
func (m mapper) concerns(ctx context.Context, policy *kube.QuotaPolicy, p *corev1.Pod, keys map[string]bool) bool {
	for _, ref := range policy.Spec.TargetRefs {
		key := ref.Kind + "/" + ref.Name
		is, known := keys[key]
		if !known && ref.Kind == kindService {
			var s corev1.Service
			err := m.reader.Get(ctx, client.ObjectKey{Namespace: p.Namespace, Name: ref.Name}, &s)
			is = err == nil && len(s.Spec.Selector) > 0 && labels.SelectorFromSet(s.Spec.Selector).Matches(labels.Set(p.Labels))
			keys[key] = is
		}
		if is {
			return true
		}
	}
	return false
}

// queue is what handlers add to.
type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// pods looks at the policies of a pod's targets, before and after a change, a moment later: a rollout of a
// thousand pods is a few looks.
func (m mapper) pods(pause time.Duration) handler.EventHandler {
	add := func(ctx context.Context, q queue, o client.Object) {
		if p, ok := o.(*corev1.Pod); ok {
			for _, n := range m.ofPod(ctx, p) {
				q.AddAfter(reconcile.Request{NamespacedName: n}, pause)
			}
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { add(ctx, q, e.Object) },
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { add(ctx, q, e.Object) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			before, isPod := e.ObjectOld.(*corev1.Pod)
			after, isPodToo := e.ObjectNew.(*corev1.Pod)
			if !isPod || !isPodToo || samePod(before, after) {
				return
			}
			add(ctx, q, before)
			add(ctx, q, after)
		},
	}
}

// existence passes what comes and goes, not what changes.
func existence() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(event.UpdateEvent) bool { return false }}
}

// selection passes a Service whose selector may be another.
func selection() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, is := e.ObjectOld.(*corev1.Service)
		after, isToo := e.ObjectNew.(*corev1.Service)
		return !is || !isToo || before.Spec.Type != after.Spec.Type ||
			!labels.Equals(before.Spec.Selector, after.Spec.Selector)
	}}
}

// StripService keeps of a Service what is read here and by the webhook, for the cache.
func StripService(in any) (any, error) {
	s, ok := in.(*corev1.Service)
	if !ok {
		return in, nil
	}
	out := &corev1.Service{ObjectMeta: s.ObjectMeta, Spec: corev1.ServiceSpec{Selector: s.Spec.Selector, Type: s.Spec.Type}}
	out.ManagedFields, out.Annotations = nil, nil
	return out, nil
}
