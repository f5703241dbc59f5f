package cluster

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/weirproxy/weir/internal/checkup"
	"github.com/weirproxy/weir/internal/inject"
)

// injection is the check kubernetes.injection.
func (c *Checks) injection(ctx context.Context) []checkup.Finding {
	a := c.asked(ctx)
	out := judgeAsking(a)
	if a.err != nil && len(a.watched) == 0 {
		return append(out, cannot("list", namespaces(), "", a.err)...)
	}
	f := c.everyPod(ctx)
	total := 0
	for _, namespace := range slices.Sorted(maps.Keys(f.by)) {
		out, total = append(out, f.by[namespace].judge(namespace)...), total+f.by[namespace].with
	}
	if len(a.enabled) == 0 && len(f.by) == 0 && f.err == nil {
		out = append(out, checkup.Warn("kubectl label namespace NAME "+inject.Label+"="+inject.Enabled+", then restart its pods", "no namespace asks for sidecars"))
	}
	for _, part := range []struct {
		of  kind
		err error
	}{{namespaces(), a.err}, {pods(), f.err}} {
		if part.err != nil {
			out = append(out, cannot("list", part.of, "", part.err)...)
		}
	}
	return orOkay(out, "%s in %s with a running sidecar, none without", checkup.Many(total, "pod"), checkup.Many(len(f.by), "namespace"))
}

// orOkay adds that all is in order where nothing but skipped things was found.
func orOkay(out []checkup.Finding, format string, args ...any) []checkup.Finding {
	if slices.ContainsFunc(out, func(f checkup.Finding) bool { return f.Level != checkup.Skipped || f.Denied }) {
		return out
	}
	return append(out, checkup.Okay(format, args...))
}

func judgeAsking(a *asking) (out []checkup.Finding) {
	if len(a.wrong) > 0 {
		out = append(out, checkup.Warn("kubectl label --overwrite namespace NAME "+inject.Label+"="+inject.Enabled+" (or "+inject.Disabled+"), then restart its pods",
			"label %s has a value that asks for nothing, in %s", inject.Label, names(a.wrong)))
	}
	if len(a.never) > 0 {
		out = append(out, checkup.Warn("kubectl label namespace NAME "+inject.Label+"-; put what is to have sidecars into another namespace",
			"%s asks for sidecars, and the injector leaves it out by its name", names(a.never)))
	}
	if len(a.outside) > 0 {
		out = append(out, checkup.Skip("if this installation is to serve them: the chart's value controller.watchNamespaces",
			"not watched by this installation, and asking for sidecars: %s", names(a.outside)))
	}
	return out
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
