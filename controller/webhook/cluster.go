package webhook

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weirproxy/weir/internal/inject"
)

// Surroundings are what the webhook knows of a pod's namespace.
type Surroundings struct {
	Label    string // the value of inject.Label on the namespace
	Services []inject.Service
}

// Cluster says what is around a pod. It is asked within a review, so it answers from memory where it can. Safe
// for concurrent use.
type Cluster interface {
	Around(ctx context.Context, namespace string) (Surroundings, error)
}

// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=services,verbs=get;list;watch

// Reader is a Cluster of a cache and, for a namespace that the cache does not say is enabled, of the server
// itself: a label may have been set a moment ago, and a pod that goes without a sidecar for that stays without.
type Reader struct {
	Cache client.Reader
	Live  client.Reader
}

// Around implements Cluster. Services that cannot be read are left out: they are for the report's words only.
func (r Reader) Around(ctx context.Context, namespace string) (Surroundings, error) {
	label, err := labelOf(ctx, r.Cache, namespace)
	if err != nil || label != inject.Enabled {
		if label, err = labelOf(ctx, r.Live, namespace); err != nil {
			return Surroundings{}, fmt.Errorf("read namespace %s: %w", namespace, err)
		}
	}
	return Surroundings{Label: label, Services: servicesOf(ctx, r.Cache, namespace)}, nil
}

func labelOf(ctx context.Context, c client.Reader, namespace string) (string, error) {
	n := &metav1.PartialObjectMetadata{}
	n.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	if err := c.Get(ctx, client.ObjectKey{Name: namespace}, n); err != nil {
		return "", err
	}
	return n.Labels[inject.Label], nil
}

func servicesOf(ctx context.Context, c client.Reader, namespace string) []inject.Service {
	var list corev1.ServiceList
	if err := c.List(ctx, &list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil
	}
	out := make([]inject.Service, 0, len(list.Items))
	for i := range list.Items {
		if s := &list.Items[i]; s.Spec.Type != corev1.ServiceTypeExternalName {
			out = append(out, inject.Service{Namespace: s.Namespace, Name: s.Name, Selector: s.Spec.Selector})
		}
	}
	return out
}
