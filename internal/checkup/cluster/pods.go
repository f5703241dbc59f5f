package cluster

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/weirproxy/weir/internal/checkup"
	"github.com/weirproxy/weir/internal/inject"
)

func pods() kind { return of("", "v1", "pods") }

const mirrorAnnotation = "kubernetes.io/config.mirror"

// podsOf are the pods of a namespace that are to have a sidecar.
type podsOf struct {
	with             int // that have one which runs
	without, waiting []string
	wrong            []string // whose own label is none, each with its value
	own              bool     // a pod's own label asks
}

// podFacts are all pods of the namespaces that are watched.
type podFacts struct {
	by  map[string]*podsOf
	err error // why they could not be read to the end
}

// everyPod reads the pods, once: of all namespaces together, since there may be many.
func (c *Checks) everyPod(ctx context.Context) *podFacts {
	if c.pods != nil {
		return c.pods
	}
	c.pods = &podFacts{by: map[string]*podsOf{}}
	watched := c.asked(ctx).watched
	c.pods.err = pages(ctx, c.kubernetes, pods(), "", "", func(u *unstructured.Unstructured) error {
		label, ok := watched[u.GetNamespace()]
		if !ok {
			return nil
		}
		p := new(corev1.Pod)
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, p); err != nil {
			return fmt.Errorf("pod %s/%s is not of the form expected: %w", u.GetNamespace(), u.GetName(), err)
		}
		c.pods.add(p, label)
		return nil
	})
	return c.pods
}

func (f *podFacts) add(p *corev1.Pod, namespaceLabel string) {
	own, labelled := p.Labels[inject.Label]
	if !getsSidecars(p) || own == inject.Disabled || !labelled && namespaceLabel != inject.Enabled {
		return
	}
	of := f.by[p.Namespace]
	if of == nil {
		of = &podsOf{}
		f.by[p.Namespace] = of
	}
	of.own = of.own || own == inject.Enabled
	switch why, has := sidecarOf(p); {
	case labelled && own != inject.Enabled:
		of.wrong = append(of.wrong, p.Name+" ("+own+")")
	case !has:
		of.without = append(of.without, p.Name)
	case why != "":
		of.waiting = append(of.waiting, p.Name+": "+why)
	default:
		of.with++
	}
}

// judge finds those pods of a namespace that should have a sidecar and have none that runs.
func (p *podsOf) judge(namespace string) (out []checkup.Finding) {
	if len(p.without) > 0 {
		out = append(out, checkup.Warn("restart their workloads (kubectl -n "+namespace+" rollout restart deployment); what is not to have one gets the label "+inject.Label+"="+inject.Disabled,
			"namespace %s: %s %s no sidecar, so nothing of theirs is counted: %s", namespace, checkup.Many(len(p.without), "pod"), has(len(p.without)), names(p.without)))
	}
	if len(p.waiting) > 0 {
		out = append(out, checkup.Warn("kubectl -n "+namespace+" describe pod, and logs with -c "+inject.Container, "namespace %s: the sidecar does not run in %s", namespace, names(p.waiting)))
	}
	if len(p.wrong) > 0 {
		out = append(out, checkup.Warn("write "+inject.Label+": "+inject.Enabled+" or "+inject.Disabled+" in their workloads' pod templates",
			"namespace %s: %s %s a label %s of another value, and no sidecar for it: %s", namespace, checkup.Many(len(p.wrong), "pod"), has(len(p.wrong)), inject.Label, names(p.wrong)))
	}
	return out
}

func has(n int) string {
	if n == 1 {
		return "has"
	}
	return "have"
}

// getsSidecars reports whether a pod is one that can have a sidecar, and lives.
func getsSidecars(p *corev1.Pod) bool {
	_, mirror := p.Annotations[mirrorAnnotation]
	over := p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
	return !mirror && !over && p.DeletionTimestamp == nil && !p.Spec.HostNetwork
}
