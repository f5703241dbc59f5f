package inject

import corev1 "k8s.io/api/core/v1"

// setPodResources raises what a pod has as a whole (spec.resources) by the sidecar's, whose containers would together
// be above it, after taking back what it was raised by before. It returns by what it was raised: nil where the pod
// says nothing of CPU and memory as a whole.
func setPodResources(spec object, pod *corev1.PodTemplateSpec, old *corev1.ResourceRequirements, own corev1.ResourceRequirements) *corev1.ResourceRequirements {
	if pod.Spec.Resources == nil {
		return nil
	}
	if old == nil {
		old = &corev1.ResourceRequirements{}
	}
	limits := corev1.ResourceList{}
	for _, name := range podResources() {
		if q, ok := own.Limits[name]; ok {
			limits[name] = q
		} else if q, ok := own.Requests[name]; ok { // without a limit of its own it takes of the pod's
			limits[name] = q
		}
	}
	raised := &corev1.ResourceRequirements{
		Requests: raise(at(spec, "resources", "requests"), pod.Spec.Resources.Requests, old.Requests, own.Requests),
		Limits:   raise(at(spec, "resources", "limits"), pod.Spec.Resources.Limits, old.Limits, limits),
	}
	if len(raised.Requests)+len(raised.Limits) == 0 {
		return nil
	}
	return raised
}

// podResources are those that the sidecar asks for.
func podResources() []corev1.ResourceName {
	return []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory}
}

// raise writes have − old + by for each resource that the pod has; one that does not change keeps its text.
func raise(tree object, have, old, by corev1.ResourceList) corev1.ResourceList {
	raised := corev1.ResourceList{}
	for _, name := range podResources() {
		total, ok := have[name]
		if !ok || tree == nil {
			continue
		}
		before, more := old[name], by[name]
		if before.Cmp(more) != 0 {
			total = total.DeepCopy()
			total.Sub(before)
			total.Add(more)
			tree[string(name)] = total.String()
		}
		if !more.IsZero() {
			raised[name] = more
		}
	}
	return raised
}
