package reconcile

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weirproxy/weir/internal/inject"
)

// StripPod keeps of a pod what is read here, for the cache: a cluster has many.
func StripPod(in any) (any, error) {
	p, ok := in.(*corev1.Pod)
	if !ok {
		return in, nil // its last state, unknown, of a deleted one
	}
	out := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: p.Name, Namespace: p.Namespace, UID: p.UID, ResourceVersion: p.ResourceVersion,
			Labels: p.Labels, OwnerReferences: p.OwnerReferences, DeletionTimestamp: p.DeletionTimestamp,
		},
		Spec: corev1.PodSpec{Containers: names(p.Spec.Containers), InitContainers: names(p.Spec.InitContainers)},
		Status: corev1.PodStatus{
			Phase: p.Status.Phase, InitContainerStatuses: sidecars(p.Status.InitContainerStatuses),
			ContainerStatuses: append(sidecars(p.Status.ContainerStatuses), firstStarted(p.Status.ContainerStatuses)...),
		},
	}
	if targets, named := p.Annotations[inject.AnnotationTarget]; named {
		out.Annotations = map[string]string{inject.AnnotationTarget: targets}
	}
	return out, nil
}

// sidecars keeps of the containers' states the sidecar's: which run it is, and whether it runs.
func sidecars(in []corev1.ContainerStatus) []corev1.ContainerStatus {
	for _, c := range in {
		if c.Name != inject.Container {
			continue
		}
		out := corev1.ContainerStatus{Name: c.Name, ContainerID: c.ContainerID}
		if c.State.Running != nil {
			out.State.Running = &corev1.ContainerStateRunning{}
		}
		return []corev1.ContainerStatus{out}
	}
	return nil
}

// firstStarted keeps one container that has started, which is what Started asks for; none: nothing.
func firstStarted(in []corev1.ContainerStatus) []corev1.ContainerStatus {
	for _, c := range in {
		if hasStarted(c) {
			out := corev1.ContainerStatus{Name: c.Name}
			out.State.Running = &corev1.ContainerStateRunning{}
			return []corev1.ContainerStatus{out}
		}
	}
	return nil
}

// hasStarted reports whether a container other than the sidecar runs or has run.
func hasStarted(c corev1.ContainerStatus) bool {
	return c.Name != inject.Container &&
		(c.State.Running != nil || c.State.Terminated != nil || c.LastTerminationState.Terminated != nil)
}

// Started reports whether one of a pod's own containers runs or has run, so that it may get requests. The phase
// alone does not tell: it stays Pending while any container, the sidecar too, has never started.
func Started(p *corev1.Pod) bool {
	return p.Status.Phase != corev1.PodPending && p.Status.Phase != "" ||
		slices.ContainsFunc(p.Status.ContainerStatuses, hasStarted)
}

// sidecar is the state of a pod's sidecar; nil where it is not known.
func sidecar(p *corev1.Pod) *corev1.ContainerStatus {
	for _, list := range [][]corev1.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses} {
		for i := range list {
			if list[i].Name == inject.Container {
				return &list[i]
			}
		}
	}
	return nil
}

// runOf tells one run of a pod's sidecar from another; "" where it is not known yet. A pod that runs and of
// whose containers nothing is told is told apart by itself.
func runOf(p *corev1.Pod) string {
	switch c := sidecar(p); {
	case c != nil && c.ContainerID != "":
		return string(p.UID) + "/" + c.ContainerID
	case c == nil && p.Status.Phase == corev1.PodRunning:
		return string(p.UID)
	}
	return ""
}

// down reports whether a pod's sidecar is known not to run.
func down(p *corev1.Pod) bool {
	c := sidecar(p)
	return c != nil && c.State.Running == nil
}

func names(in []corev1.Container) []corev1.Container {
	out := make([]corev1.Container, len(in))
	for i := range in {
		out[i].Name = in[i].Name
	}
	return out
}

// HasSidecar reports whether the sidecar is in a pod.
func HasSidecar(p *corev1.Pod) bool {
	is := func(c corev1.Container) bool { return c.Name == inject.Container }
	return slices.ContainsFunc(p.Spec.InitContainers, is) || slices.ContainsFunc(p.Spec.Containers, is)
}

// Ended reports whether a pod's containers run no more and never will again.
func Ended(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

// samePod reports whether nothing of a pod changed that a status could tell.
func samePod(a, b *corev1.Pod) bool {
	return a.UID == b.UID && a.Status.Phase == b.Status.Phase && HasSidecar(a) == HasSidecar(b) &&
		runOf(a) == runOf(b) && down(a) == down(b) && Started(a) == Started(b) &&
		(a.DeletionTimestamp == nil) == (b.DeletionTimestamp == nil) && maps.Equal(a.Labels, b.Labels) &&
		a.Annotations[inject.AnnotationTarget] == b.Annotations[inject.AnnotationTarget] && ownerKey(a) == ownerKey(b)
}

// ownerKey is a pod's workload as a target is written, Deployment/orders; "" where it has none.
func ownerKey(p *corev1.Pod) string {
	kind, name := inject.OwnerOf(p.ObjectMeta)
	if kind == "" {
		return ""
	}
	return kind + "/" + name
}

// namedTargets are the targets that a pod names by annotation, as Kind/name, of its own namespace.
func namedTargets(p *corev1.Pod) []string {
	text := p.Annotations[inject.AnnotationTarget]
	if text == "" {
		return nil
	}
	var out []string
	for t := range strings.SplitSeq(text, ",") {
		parts := strings.Split(strings.TrimSpace(t), "/")
		if len(parts) == 3 && parts[0] == p.Namespace {
			parts = parts[1:]
		}
		if len(parts) == 2 {
			out = append(out, parts[0]+"/"+parts[1])
		}
	}
	return out
}

// The index of pods: by their workload, and by the targets that they name.
const podTargets = "weir.targets"

func podKeys(o client.Object) []string {
	p, ok := o.(*corev1.Pod)
	if !ok {
		return nil
	}
	keys := namedTargets(p)
	if owner := ownerKey(p); owner != "" {
		keys = append(keys, owner)
	}
	return keys
}
