package cluster

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/weirproxy/weir/internal/checkup"
	"github.com/weirproxy/weir/internal/inject"
)

func pods() kind { return of("", "v1", "pods") }

const mirrorAnnotation = "kubernetes.io/config.mirror"

// injection is the check kubernetes.injection.
func (c *Checks) injection(ctx context.Context) []checkup.Finding {
	asking, err := c.labelled(ctx)
	if err != nil {
		return cannot("list", namespaces(), "", err)
	}
	if len(asking) == 0 {
		return []checkup.Finding{checkup.Warn("kubectl label namespace NAME "+inject.Label+"="+inject.Enabled+", then restart its pods", "no namespace asks for sidecars")}
	}
	var out []checkup.Finding
	total := 0
	for _, namespace := range asking {
		list, err := objects[corev1.Pod](ctx, c.kubernetes, pods(), namespace, "")
		if err != nil {
			return cannot("list", pods(), namespace, err)
		}
		findings, with := judgePods(namespace, list)
		out, total = append(out, findings...), total+with
	}
	return checkup.OrOkay(out, "%s in %s with a running sidecar, none without", checkup.Many(total, "pod"), checkup.Many(len(asking), "namespace"))
}

// judgePods finds those pods of a namespace that should have a sidecar and have none that runs, and counts the others.
func judgePods(namespace string, list []corev1.Pod) (out []checkup.Finding, with int) {
	var without, waiting []string
	for i := range list {
		p := &list[i]
		switch why, has := sidecarOf(p); {
		case !wantsSidecar(p):
		case !has:
			without = append(without, p.Name)
		case why != "":
			waiting = append(waiting, p.Name+": "+why)
		default:
			with++
		}
	}
	if len(without) > 0 {
		out = append(out, checkup.Warn("restart their workloads (kubectl -n "+namespace+" rollout restart deployment); what is not to have one gets the label "+inject.Label+"="+inject.Disabled,
			"namespace %s: %s %s no sidecar, so nothing of theirs is counted: %s", namespace, checkup.Many(len(without), "pod"), has(len(without)), names(without)))
	}
	if len(waiting) > 0 {
		out = append(out, checkup.Warn("kubectl -n "+namespace+" describe pod, and logs with -c "+inject.Container, "namespace %s: the sidecar does not run in %s", namespace, names(waiting)))
	}
	return out, with
}

func has(n int) string {
	if n == 1 {
		return "has"
	}
	return "have"
}

// wantsSidecar reports whether a pod of a namespace that asks for sidecars is one that gets them, and lives.
func wantsSidecar(p *corev1.Pod) bool {
	_, mirror := p.Annotations[mirrorAnnotation]
	over := p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
	return p.Labels[inject.Label] != inject.Disabled && !mirror && !over && p.DeletionTimestamp == nil && !p.Spec.HostNetwork
}

// sidecarOf reports whether a pod has the sidecar, and why it does not run if so.
func sidecarOf(p *corev1.Pod) (why string, has bool) {
	for _, list := range [][]corev1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for _, c := range list {
			if c.Name == inject.Container {
				return notRunning(p), true
			}
		}
	}
	return "", false
}

// notRunning is why kubelet says that the sidecar does not run; "" also where it says nothing yet.
func notRunning(p *corev1.Pod) string {
	for _, list := range [][]corev1.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses} {
		for _, s := range list {
			switch {
			case s.Name != inject.Container:
			case s.State.Waiting != nil:
				return fmt.Sprintf("%s %s", s.State.Waiting.Reason, s.State.Waiting.Message)
			case s.State.Terminated != nil:
				return fmt.Sprintf("ended with code %d", s.State.Terminated.ExitCode)
			}
		}
	}
	return ""
}
