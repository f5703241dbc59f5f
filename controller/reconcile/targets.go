package reconcile

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weirproxy/weir/api/v1alpha1"
	"github.com/weirproxy/weir/api/v1alpha1/kube"
	"github.com/weirproxy/weir/internal/policy"
)

// Target is one of a policy's targets as it is in the cluster.
type Target struct {
	Ref v1alpha1.TargetRef
	// Name is canonical, namespace/kind/name.
	Name string
	// Missing is why the target cannot be counted for, "" where it can.
	Missing string
	// Selector is a Service's.
	Selector map[string]string
}

// Named reports whether Envoy names the target to a sidecar that serves many, so that no pod belongs to it.
func (t Target) Named() bool { return gatewayKind(t.Ref.Kind) }

func gatewayKind(kind string) bool {
	return kind == "Gateway" || kind == "HTTPRoute" || kind == "GRPCRoute"
}

const (
	kindService  = "Service"
	gatewayGroup = "gateway.networking.k8s.io"
)

// workloads are the kinds of group apps that own pods.
func workloads() []string { return []string{"Deployment", "StatefulSet", "DaemonSet"} }

// kinds finds the version in which the cluster serves an optional kind.
type kinds interface {
	// Served returns the kind with its version, or why the cluster does not have it.
	Served(ctx context.Context, gk schema.GroupKind) (served, error)
	// Late notes whether the kind's objects could not be read in time.
	Late(gk schema.GroupKind, late bool)
}

// resolver finds targets. All it reads but optional kinds comes from a cache.
type resolver struct {
	reader client.Reader
	kinds  kinds
}

// targets looks for each target of p, in the order of its targetRefs. An error means that the answer is not
// known now.
func (r resolver) targets(ctx context.Context, p *kube.QuotaPolicy) ([]Target, error) {
	out := make([]Target, 0, len(p.Spec.TargetRefs))
	for _, ref := range p.Spec.TargetRefs {
		t := Target{Ref: ref, Name: policy.TargetName(p.Namespace, ref.Kind, ref.Name)}
		if err := r.find(ctx, p.Namespace, &t); err != nil {
			return nil, fmt.Errorf("look for %s: %w", t.Name, err)
		}
		out = append(out, t)
	}
	return out, nil
}

func (r resolver) find(ctx context.Context, namespace string, t *Target) error {
	switch {
	case t.Ref.Kind == kindService:
		return r.service(ctx, namespace, t)
	case slices.Contains(workloads(), t.Ref.Kind):
		return r.exists(ctx, namespace, t, schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: t.Ref.Kind})
	case t.Named():
		return r.route(ctx, namespace, t)
	}
	t.Missing = fmt.Sprintf("a policy cannot have a %s as target", t.Ref.Kind)
	return nil
}

func (r resolver) service(ctx context.Context, namespace string, t *Target) error {
	var s corev1.Service
	err := r.reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: t.Ref.Name}, &s)
	switch {
	case apierrors.IsNotFound(err):
		t.Missing = notFound(namespace, t.Ref)
	case err != nil:
		return err
	case s.Spec.Type == corev1.ServiceTypeExternalName || len(s.Spec.Selector) == 0:
		t.Missing = fmt.Sprintf("%s/%s has no selector, so no pod belongs to it; name the workload instead", t.Ref.Kind, t.Ref.Name)
	default:
		t.Selector = s.Spec.Selector
	}
	return nil
}

func (r resolver) exists(ctx context.Context, namespace string, t *Target, gvk schema.GroupVersionKind) error {
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(gvk)
	err := r.reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: t.Ref.Name}, m)
	if apierrors.IsNotFound(err) {
		t.Missing = notFound(namespace, t.Ref)
		return nil
	}
	return err
}

func (r resolver) route(ctx context.Context, namespace string, t *Target) error {
	gk := schema.GroupKind{Group: gatewayGroup, Kind: t.Ref.Kind}
	kind, err := r.kinds.Served(ctx, gk)
	if err != nil {
		return err
	}
	if t.Missing = kind.missing; t.Missing != "" {
		return nil
	}
	return r.inTime(ctx, kind, func(ctx context.Context) error { return r.exists(ctx, namespace, t, kind.gvk) }, t)
}

// inTime reads an object of an optional kind. Where the kind cannot be listed, which a cache waits for without an
// end, that is why the target is missing.
func (r resolver) inTime(ctx context.Context, kind served, read func(context.Context) error, t *Target) error {
	short, cancel := context.WithTimeout(ctx, kind.patience)
	defer cancel()
	err := read(short)
	late := err != nil && short.Err() != nil && ctx.Err() == nil
	r.kinds.Late(kind.gvk.GroupKind(), late)
	if !late {
		return err
	}
	t.Missing = fmt.Sprintf("it is not known whether there is %s/%s: kube-apiserver does not list %s; see whether it serves them, and whether the controller may list them",
		t.Ref.Kind, t.Ref.Name, kind.gvk.GroupKind())
	return nil
}

func notFound(namespace string, ref v1alpha1.TargetRef) string {
	return fmt.Sprintf("there is no %s/%s in namespace %s", ref.Kind, ref.Name, namespace)
}

// missing says of each target that is not there why.
func missing(targets []Target) []string {
	var out []string
	for _, t := range targets {
		if t.Missing != "" {
			out = append(out, t.Missing)
		}
	}
	return out
}

// published are the targets that exist, as the topic is told of them.
func published(targets []Target) []policy.Target {
	var out []policy.Target
	for _, t := range targets {
		if t.Missing == "" {
			out = append(out, policy.Target{Name: t.Name, Selector: t.Selector})
		}
	}
	return out
}
