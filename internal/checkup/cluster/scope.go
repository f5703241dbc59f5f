package cluster

import (
	"context"
	"maps"
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/weirproxy/weir/internal/inject"
)

func namespaces() kind { return of("", "v1", "namespaces") }

// scope is where an installation looks: what the namespace selectors of its injector let through. The chart writes
// them from controller.watchNamespaces, with the namespaces that never get sidecars left out.
type scope struct {
	selectors []labels.Selector
	never     []string
}

// scopeOf: w nil: there is no injector, or it may not be read; then all but the namespaces that the chart leaves out are looked at.
func scopeOf(w *admissionv1.MutatingWebhookConfiguration, own string) scope {
	if w == nil {
		return scope{never: []string{metav1.NamespaceSystem, corev1.NamespaceNodeLease, own}}
	}
	var s scope
	for _, h := range w.Webhooks {
		selector, err := metav1.LabelSelectorAsSelector(h.NamespaceSelector)
		if err != nil {
			continue // kube-apiserver takes none such
		}
		if h.NamespaceSelector == nil {
			selector = labels.Everything()
		} else {
			s.never = append(s.never, leftOut(h.NamespaceSelector)...)
		}
		s.selectors = append(s.selectors, selector)
	}
	return s
}

// leftOut are the namespaces that a selector leaves out by their names.
func leftOut(s *metav1.LabelSelector) []string {
	for _, e := range s.MatchExpressions {
		if e.Key == corev1.LabelMetadataName && e.Operator == metav1.LabelSelectorOpNotIn {
			return e.Values
		}
	}
	return nil
}

// has reports whether pods of a namespace may get sidecars: with its label as it should be, or with one of their own.
func (s scope) has(n *corev1.Namespace) bool {
	if s.selectors == nil {
		return !s.leavesOut(n.Name)
	}
	asks, says := labels.Set(maps.Clone(n.Labels)), labels.Set(maps.Clone(n.Labels))
	if asks == nil {
		asks = labels.Set{}
	}
	asks[inject.Label] = inject.Enabled
	delete(says, inject.Label)
	return slices.ContainsFunc(s.selectors, func(one labels.Selector) bool { return one.Matches(asks) || one.Matches(says) })
}

func (s scope) leavesOut(namespace string) bool { return slices.Contains(s.never, namespace) }

// asking are the namespaces by what their label inject.Label says.
type asking struct {
	watched map[string]string // those that may get sidecars, with their labels' values
	enabled []string          // of these those that ask
	outside []string          // those that ask, and that this installation does not look at
	never   []string          // those that ask, and get nothing by their names
	wrong   []string          // watched ones with a value that is none, each with it
	err     error             // why namespaces could not be read to the end
}

// asked reads the namespaces, once.
func (c *Checks) asked(ctx context.Context) *asking {
	if c.asking != nil {
		return c.asking
	}
	c.asking = &asking{watched: map[string]string{}}
	w, err := object[admissionv1.MutatingWebhookConfiguration](ctx, c.kubernetes, webhooks(), "", injectorName)
	if err != nil {
		w = nil
	}
	list, err := objects[corev1.Namespace](ctx, c.kubernetes, namespaces(), "", "")
	c.asking.err = err
	in := scopeOf(w, c.cfg.Namespace)
	for i := range list {
		c.asking.add(&list[i], in)
	}
	return c.asking
}

func (a *asking) add(n *corev1.Namespace, in scope) {
	value, labelled := n.Labels[inject.Label]
	switch {
	case in.has(n):
		a.watched[n.Name] = value
		if value == inject.Enabled {
			a.enabled = append(a.enabled, n.Name)
		} else if labelled && value != inject.Disabled {
			a.wrong = append(a.wrong, n.Name+" ("+value+")")
		}
	case value != inject.Enabled:
	case in.leavesOut(n.Name):
		a.never = append(a.never, n.Name)
	default:
		a.outside = append(a.outside, n.Name)
	}
}
